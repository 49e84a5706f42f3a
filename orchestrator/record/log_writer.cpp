#include "orchestrator/record/log_writer.hpp"

#include "core/msgpack.hpp"
#include "orchestrator/record/log_frames.hpp"
#include "orchestrator/record/log_origin.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {

Result<LogWriter> LogWriter::create(const std::filesystem::path& log, const LogWriting& writing) {
  TEMPER_TRY(const std::size_t there, count_log_files(log));
  if (there > 0)
    return invalid_input(log.string() +
                         " exists; choose another run_dir, or continue the run with --resume");
  TEMPER_TRY(AppendFile file, AppendFile::open(log));
  LogWriter writer(log, writing, std::move(file));
  TEMPER_TRY_STATUS(writer.begin_file());
  return writer;
}

Result<LogWriter> LogWriter::reopen(const std::filesystem::path& log,
                                    const LogWriting& writing,
                                    const End& end) {
  const std::filesystem::path path = log_file(log, end.file);
  TEMPER_TRY(AppendFile file, AppendFile::open(path));
  TEMPER_TRY(const std::size_t files, count_log_files(log));
  if (file.size() != end.bytes || files > end.file) {
    return corrupt(
        fmt::format("{} does not end at byte {} any more, as when it was read; is another process "
                    "writing to it?",
                    path.string(),
                    end.bytes));
  }
  LogWriter writer(log, writing, std::move(file));
  writer.n_ = end.file;
  writer.position_ = writer.written_ = end.position;
  TEMPER_TRY_STATUS(end.bytes == 0 ? writer.begin_file() : writer.name_program({}));
  return writer;
}

Status LogWriter::begin_file() {
  begins_ = true;
  return name_program(log_header(position_));
}

Status LogWriter::name_program(std::string before) {
  const std::size_t begin = before.size();
  before.append(kFrameHeader, '\0');
  encode_to(before, this_program());
  position_.chain = seal_frame(std::span(before).subspan(begin), kNamesProgram, position_.chain);
  TEMPER_TRY_STATUS(file_.append(before));
  position_.bytes += std::ssize(before);
  written_ = position_;
  return {};
}

/// Starts the next file only once this one is durable, so that no crash leaves a gap between files.
Status LogWriter::next_file() {
  TEMPER_TRY_STATUS(sync());
  TEMPER_TRY(file_, AppendFile::open(log_file(log_, n_ + 1)));
  ++n_;
  return begin_file();
}

Status LogWriter::append(std::string_view record) {
  if (state_)
    state_ = add(record);
  return state_;
}

Status LogWriter::flush() {
  if (state_)
    state_ = write_gathered();
  return state_;
}

Status LogWriter::sync() {
  if (flush())
    state_ = file_.sync();
  return state_;
}

Status LogWriter::add(std::string_view record) {
  if (file_.size() + static_cast<std::int64_t>(buffer_.size()) >= writing_.file_bytes)
    TEMPER_TRY_STATUS(next_file());
  if (begins_)
    packer_.begin();
  // The frame is built in place: space for the header, then the payload.
  const std::size_t begin = buffer_.size();
  buffer_.append(kFrameHeader, '\0');
  packer_.pack(record, buffer_);
  const std::span<char> frame = std::span(buffer_).subspan(begin);
  position_.chain = seal_frame(frame, begins_ ? kBegins : 0, position_.chain);
  position_.bytes += static_cast<std::int64_t>(frame.size());
  begins_ = false;
  if (writing_.when == LogWriting::When::Through || buffer_.size() >= kGather)
    return write_gathered();
  return {};
}

Status LogWriter::write_gathered() {
  if (writing_.when == LogWriting::When::Gathered)
    TEMPER_TRY_STATUS(check_named());
  Status status = buffer_.empty() ? Status() : file_.append(buffer_);
  buffer_.clear();
  if (status)
    written_ = position_;
  else
    position_ = written_;
  return status;
}

}  // namespace temper::orchestrator
