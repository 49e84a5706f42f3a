#include "orchestrator/model_comparison/compare_model.hpp"

#include "actors/byte_pair/byte_pair_tokenizer.hpp"
#include "actors/guard/executable.hpp"
#include "actors/model_folder/layout.hpp"
#include "actors/model_folder/model_folder.hpp"
#include "core/clock.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/temporary_folder.hpp"
#include "orchestrator/model_comparison/chat_texts.hpp"
#include "orchestrator/run/processes/exit_reason.hpp"
#include "orchestrator/run/processes/run_program.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using actors::ModelFolder;

/// `python -m temper.compare` makes it once the package is imported.
constexpr const char* kStartedFile = "started";
constexpr std::size_t kLongestText = 64;  ///< Tokens of the text among the sequences.

/// Ten minutes to import frameworks and to compute on a busy machine, and a minute for each 1e9
/// bytes of float32 weights: a slow disk reads 17 MB/s.
Duration default_deadline(const actors::Layout& layout) {
  constexpr Duration kStart = std::chrono::minutes(10), kBillion = std::chrono::minutes(1);
  return kStart + kBillion * (layout.parameters() * 4 / 1'000'000'000);
}

/// One of the two processes.
struct Process {
  std::string name;  ///< For messages.
  std::vector<std::string> command;
  fs::path folder;  ///< Has its request, and gets its results.
  Duration deadline{};

  fs::path log() const { return folder / "log"; }
  std::string last_words(const Status& ended) const {
    return orchestrator::last_words(read_file(log()).value_or(""), ended);
  }
};

/// Errors: Timeout; Unavailable: stopped by a signal; Unsupported: exit code kPermanentExit, with
/// its last line of output; Internal.
Status run(const Process& process) {
  const RealClock clock;
  const Time end = clock.now() + process.deadline;
  bool late = false;
  Status status =
      run_program({"compare", process.command, {}, process.log()}, process.name, nullptr, [&] {
        late = clock.now() >= end;
        return late;
      });
  if (!late)
    return status;
  return Error{ErrorCode::Timeout,
               fmt::format("{} was not done within {} and was killed; check that the float32 "
                           "weights fit into this machine's memory",
                           process.name,
                           temper::to_text(process.deadline))};
}

Result<Process> make_process(const ComparisonRequest& request, const fs::path& folder) {
  Process process;
  process.folder = folder;
  TEMPER_TRY_STATUS(make_folder(folder));
  TEMPER_TRY_STATUS(write_file_atomically(folder / kRequestFile, to_json(request)));
  return process;
}

/// What Temper makes of the texts and chats.
struct OwnTexts {
  std::vector<std::vector<std::int32_t>> tokens;  ///< Of each text of the request.
  std::vector<RenderedChat> chats;
  std::string note;  ///< Why no text is in the request.
};

/// Adds the texts that Temper's tokenizer accepts to the request, and the first one to the
/// sequences. The tokenizer of a built-in task accepts only its own characters.
void add_texts(const ModelFolder& folder, ComparisonRequest& request, OwnTexts& own) {
  if (!folder.has_tokenizer()) {
    own.note = "none";
    return;
  }
  const auto tokenizer = actors::BytePairTokenizer::open(folder.path() / actors::kTokenizerFile);
  if (!tokenizer) {
    own.note = "not compared: Temper does not support it: " + tokenizer.error().context;
    return;
  }
  for (const std::string& text : comparison_texts()) {
    const auto ids = tokenizer->encode(text);
    if (!ids || ids->empty())
      continue;
    request.texts.push_back(text);
    own.tokens.push_back(*ids);
  }
  if (own.tokens.empty()) {
    own.note = "not compared: Temper can encode none of the texts with it";
    return;
  }
  request.chats = comparison_chats();
  std::vector<std::int32_t> sequence = own.tokens.front();
  const auto context = static_cast<std::size_t>(folder.model().context.count());
  sequence.resize(std::min({sequence.size(), kLongestText, context}));
  if (std::ranges::max(sequence) < folder.model().vocabulary.value_or(0))
    request.sequences.push_back(std::move(sequence));
}

Result<TransformersAnswer> ask_transformers(const CompareOptions& options,
                                            const ComparisonRequest& request,
                                            Process process,
                                            std::int32_t vocabulary) {
  auto program = actors::find_executable(options.python);
  if (!program) {
    return Error{ErrorCode::NotFound,
                 program.error().context + "; name a Python interpreter in TEMPER_PYTHON"};
  }
  process.name = *program + " -m temper.compare";
  process.command = {
      *program, "-m", "temper.compare", options.folder.string(), process.folder.string()};
  const Status status = run(process);
  std::error_code ignored;
  if (!status && status.error().code == ErrorCode::Unsupported)
    return Error{ErrorCode::NotFound, process.last_words(status)};
  if (!status && status.error().code == ErrorCode::Internal &&
      !fs::exists(process.folder / kStartedFile, ignored)) {
    return Error{ErrorCode::NotFound,
                 fmt::format("{} cannot import the temper package: {}; set TEMPER_PYTHON to an "
                             "interpreter that has it, or install it with `pip install ./python` "
                             "(docs/how-to/install.md)",
                             *program,
                             process.last_words(status))};
  }
  if (!status)
    return status.error();
  const auto text = read_file(process.folder / kAnswerFile);
  if (!text) {
    return Error{ErrorCode::Internal,
                 fmt::format("{} ended without a result: {}", process.name, text.error().context)};
  }
  auto answer = parse_transformers_answer(*text, request, vocabulary);
  if (!answer)
    return std::move(answer).error().within("invalid answer of " + process.name);
  return answer;
}

Status ask_worker(const CompareOptions& options, Process process) {
  process.name = "temper-worker logits";
  process.command = {options.worker.string(),
                     "logits",
                     "--model",
                     options.folder.string(),
                     "--folder",
                     process.folder.string()};
  for (const std::string& key : options.ignore)
    process.command.insert(process.command.end(), {"--ignore", key});
  Status status = run(process);
  if (!status && status.error().code == ErrorCode::Unsupported)
    return Error{ErrorCode::Unsupported, process.last_words(status)};
  return status;
}

Result<std::vector<float>> logits_of(const Process& process,
                                     std::string_view program,
                                     const ComparisonRequest& request,
                                     std::int32_t vocabulary) {
  auto logits = read_logits(process.folder / kLogitsFile, request, vocabulary);
  if (!logits)
    return std::move(logits).error().within(fmt::format("invalid answer of {}", program));
  return logits;
}

/// The first `of_ids` sequences are pseudo-random ids.
std::vector<SequenceDifference> differences_of(const ComparisonRequest& request,
                                               std::size_t of_ids,
                                               std::span<const float> ours,
                                               std::span<const float> theirs,
                                               std::int32_t vocabulary) {
  std::vector<SequenceDifference> out;
  std::size_t begin = 0;
  for (const auto& sequence : request.sequences) {
    const std::size_t size = sequence.size() * static_cast<std::size_t>(vocabulary);
    out.push_back(
        compare_logits(ours.subspan(begin, size), theirs.subspan(begin, size), vocabulary));
    out.back().input = out.size() <= of_ids ? "ids" : "text";
    begin += size;
  }
  return out;
}

}  // namespace

Result<ModelComparison> compare_model(const CompareOptions& options) {
  TEMPER_TRY(const ModelFolder folder, ModelFolder::open(options.folder, options.ignore));
  TEMPER_TRY(const auto layout, actors::Layout::make(folder.model(), 0));
  TEMPER_TRY_STATUS(folder.check_tensors(layout));
  const std::int32_t vocabulary = layout.vocabulary();
  ComparisonRequest request;
  request.sequences = comparison_sequences(vocabulary, folder.model().context);
  const std::size_t of_ids = request.sequences.size();
  OwnTexts own;
  add_texts(folder, request, own);

  TEMPER_TRY(const TemporaryFolder temporary, TemporaryFolder::create());
  own.chats = render_chats(request.chats, folder.path(), temporary.path());
  TEMPER_TRY(Process python, make_process(request, temporary.path() / "transformers"));
  TEMPER_TRY(Process worker, make_process(request, temporary.path() / "temper"));
  python.deadline = worker.deadline = options.deadline.value_or(default_deadline(layout));
  TEMPER_TRY(const TransformersAnswer answer,
             ask_transformers(options, request, python, vocabulary));
  TEMPER_TRY(const auto theirs, logits_of(python, "temper.compare", request, vocabulary));
  TEMPER_TRY_STATUS(ask_worker(options, worker));
  TEMPER_TRY(const auto ours, logits_of(worker, "temper-worker logits", request, vocabulary));

  ModelComparison c;
  c.name = options.name;
  c.architecture = answer.architecture;
  c.transformers = answer.transformers;
  c.torch = answer.torch;
  c.sequences = differences_of(request, of_ids, ours, theirs, vocabulary);
  c.tokenizer = compare_tokens(own.tokens, answer);
  c.chat_template = compare_chats(own.chats, answer);
  if (!own.note.empty()) {
    c.tokenizer.note = own.note;
    c.chat_template.note = "not compared: it needs the tokenizer";
  }
  c.agrees = agrees(c);
  return c;
}

}  // namespace temper::orchestrator
