// What zlib's own reader makes of a compressed file.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <string>

namespace temper::test {

inline std::string gunzip(const std::filesystem::path& path) {
  std::string out, piece(1 << 16, '\0');
  gzFile file = gzopen(path.c_str(), "rb");
  EXPECT_NE(file, nullptr) << path;
  if (file == nullptr)
    return out;
  for (int n = 0; (n = gzread(file, piece.data(), static_cast<unsigned>(piece.size()))) > 0;)
    out.append(piece, 0, static_cast<std::size_t>(n));
  EXPECT_EQ(gzclose(file), Z_OK) << "the stream has an end: " << path;
  return out;
}

}  // namespace temper::test
