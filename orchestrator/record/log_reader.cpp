#include "orchestrator/record/log_reader.hpp"

#include "core/msgpack.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {

Result<LogReader> LogReader::open(const std::filesystem::path& log) {
  auto first = FrameReader::open(log, {});
  if (!first && first.error().code == ErrorCode::NotFound) {
    return Error{ErrorCode::NotFound,
                 fmt::format("{}: expected a run folder; `temper runs FOLDER` lists the runs of a "
                             "folder",
                             first.error().context)};
  }
  if (!first)
    return std::move(first).error();
  TEMPER_TRY(const std::size_t files, count_log_files(log));
  return LogReader(log, files, *std::move(first));
}

Result<std::optional<std::string_view>> LogReader::next() {
  using None = std::optional<std::string_view>;
  while (!ended_) {
    TEMPER_TRY(const auto frame, reader_.next());
    if (!frame) {
      TEMPER_TRY(const bool more, go_on());
      if (more)
        continue;
      break;
    }
    if (frame->names_program) {
      auto origin = decode<LogOrigin>(frame->payload);
      if (!origin) {
        TEMPER_TRY_STATUS(stop("the name of the program that wrote it cannot be read"));
        break;
      }
      origin_ = *std::move(origin);
      continue;
    }
    if (frame->begins)
      unpacker_.begin();
    const Status unpacked = unpacker_.unpack(frame->payload, kMostBytes, record_);
    if (unpacked)
      return std::optional(std::string_view(record_));
    TEMPER_TRY_STATUS(stop(unpacked.error().context));
  }
  return None();
}

Result<bool> LogReader::go_on() {
  const bool complete = reader_.end().kind == LogEnd::Kind::Whole && reader_.byte() > 0;
  const std::filesystem::path after = log_file(log_, file_ + 1);
  if (!complete || file_ >= files_ || !std::filesystem::exists(after)) {
    TEMPER_TRY_STATUS(end_here());
    return false;
  }
  TEMPER_TRY(reader_, FrameReader::open(after, reader_.position()));
  ++file_;
  return true;
}

/// Interprets the end of one file in view of the files behind it.
Status LogReader::end_here() {
  ended_ = true;
  end_ = reader_.end();
  end_.file = file_;
  if (file_ < files_ && end_.kind != LogEnd::Kind::Damaged) {
    // A file is complete and durable before the next one starts, so no crash leaves this.
    const std::string name = log_file(log_, file_).filename().string();
    end_.what = fmt::format(
        "damaged at byte {} of {} ({} bytes): {}",
        end_.whole_bytes,
        name,
        end_.file_bytes,
        end_.kind == LogEnd::Kind::Torn || end_.whole_bytes == 0
            ? "the file is truncated there, though another file follows"
            : log_file(log_, file_ + 1).filename().string() + ", which follows it, is missing");
    end_.kind = LogEnd::Kind::Damaged;
  }
  if (end_.kind != LogEnd::Kind::Damaged)
    return {};
  if (!end_.goes_on_at) {
    TEMPER_TRY(end_.goes_on_at, find_in_later_files());
  }
  end_.what += end_.goes_on_at ? fmt::format("; records that look whole follow from byte {} of {}",
                                             end_.goes_on_at->byte,
                                             end_.goes_on_at->file.filename().string())
                               : std::string("; no whole record follows");
  return {};
}

Result<std::optional<LogPlace>> LogReader::find_in_later_files() const {
  for (std::size_t n = file_ + 1; n <= files_; ++n) {
    const std::filesystem::path file = log_file(log_, n);
    if (!std::filesystem::exists(file))
      continue;
    TEMPER_TRY(auto found, find_frame({file, 0}));
    if (found)
      return found;
  }
  return std::optional<LogPlace>();
}

Status LogReader::stop(const std::string& what) {
  TEMPER_TRY_STATUS(reader_.stop(what));
  return end_here();
}

}  // namespace temper::orchestrator
