#include "cli/run/samples_command.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/view/terminal_view.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>

namespace temper::cli {
namespace {

using orchestrator::FoundGroup;
using orchestrator::FoundSample;
using orchestrator::Sample;
using orchestrator::SampleSegment;

std::string versions_text(const Sample& s) {
  if (s.segments.size() < 2)
    return s.segments.empty() ? "" : fmt::format("  version {}", s.segments.front().version);
  std::string text = "  versions";
  for (const SampleSegment& segment : s.segments)
    text += fmt::format(" {}:{}", segment.version, segment.tokens);
  return text;
}

/// Makes control characters visible, so that generated text cannot send terminal escapes.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n')
      out += "\n      ";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out;
}

/// "1"; "-" if the response has no reward.
std::string reward_text(const Sample& s) {
  return s.reward ? fmt::format("{:g}", *s.reward) : std::string("-");
}

/// "reward 0.38 ± 0.48 of 8 responses"
std::string spread_text(const FoundGroup& group) {
  const std::size_t responses = group.responses.size();
  const std::uint64_t judged = group.reward.count();
  std::string text =
      judged == 0 ? std::string("not scored") : fmt::format("reward {:.2f}", group.reward.mean());
  if (judged > 1)
    text += fmt::format(" ± {:.2f}", group.reward.deviation());
  text += fmt::format(" of {} response{}", responses, responses == 1 ? "" : "s");
  if (judged > 0 && judged < responses)
    text += fmt::format(", {} of them not scored", responses - judged);
  return text;
}

/// Prints a group: prompt, expected answer, and its responses.
void print(const FoundGroup& group, bool reversed, Colours colours, std::ostream& out) {
  const auto faint = [&](const std::string& text) {
    return colours == Colours::On ? "\x1b[2m" + text + "\x1b[0m" : text;
  };
  const Sample& first = group.responses.front().sample;
  std::string head =
      fmt::format("step {}  group {}  {}", first.step, first.group, spread_text(group));
  if (first.age)
    head += fmt::format("  age {}", *first.age);
  if (!first.source.empty())
    head += fmt::format("  source {}", shown(first.source));
  out << head << '\n' << faint("  prompt    ") << shown(first.prompt) << '\n';
  if (!first.answer.empty()) {
    out << faint("  expected  ") << shown(first.answer);
    if (reversed) {
      const std::string straight(first.answer.rbegin(), first.answer.rend());
      out << faint("   digits reversed (task.reverse_answer): " + shown(straight));
    }
    out << '\n';
  }
  for (const FoundSample& response : group.responses) {
    const Sample& s = response.sample;
    std::string facts =
        fmt::format("  {:<9} reward {}", fmt::format(".{}", s.place), reward_text(s));
    for (const auto& [name, part] : s.rewards)
      facts += fmt::format("  {} {:g}", name, part);
    facts += fmt::format("  {} tokens{}", s.length, versions_text(s));
    if (s.outcome != orchestrator::Outcome::Trained)
      facts += fmt::format("  {}: {}", name_of(s.outcome), s.reason);
    out << faint(facts) << "\n      " << shown(s.response) << '\n';
  }
  out << '\n';
}

/// The message if samples exist, but none matches the query.
std::string no_match_text(const SamplesOptions& options) {
  orchestrator::SampleQuery all;
  all.limit = 1;
  std::string text = "no sample";
  if (options.query.step)
    text += fmt::format(" of step {}", *options.query.step);
  if (!options.query.text.empty())
    text += fmt::format(" containing \"{}\"", options.query.text);
  const auto newest = orchestrator::find_samples(std::filesystem::path(options.run), all);
  if (newest && !newest->groups.empty()) {
    text += fmt::format(
        "; found {} groups, the newest of step {} (samples.share sets the share that is kept)",
        newest->matches,
        newest->groups.back().responses.front().sample.step);
  }
  return text;
}

}  // namespace

int run_samples(const SamplesOptions& options, std::ostream& out, std::ostream& err) {
  const auto found = orchestrator::find_samples(std::filesystem::path(options.run), options.query);
  if (!found)
    return fail(found.error(), err);
  for (const FoundGroup& group : found->groups) {
    if (!options.json)
      print(group, found->reversed, options.colours, out);
    for (std::size_t i = 0; options.json && i < group.responses.size(); ++i)
      out << group.responses[i].line << '\n';
  }
  if (found->matches == 0) {
    err << fmt::format("temper: {}\n", no_match_text(options));
    return kFound;
  }
  if (!options.json)
    out << fmt::format("{} of {} groups\n", found->groups.size(), found->matches);
  return kDone;
}

Handler samples_command(Flags& flags) {
  const auto options = std::make_shared<SamplesOptions>();
  const auto worst = std::make_shared<bool>(false);
  const auto best = std::make_shared<bool>(false);
  const auto step = std::make_shared<std::optional<std::uint64_t>>();
  const auto limit = std::make_shared<int>(10);
  flags.argument("run", options->run, "Run folder");
  flags.number("--step", *step, "Only groups of this step");
  flags.text("--grep",
             options->query.text,
             "Only groups with this text in the prompt, a response or the expected answer");
  flags.flag("--worst", *worst, "Lowest mean reward first (default: oldest first)");
  flags.flag("--best", *best, "Highest mean reward first");
  flags.number("--limit", *limit, "Maximum number of groups");
  flags.json(options->json, "Print the lines of samples.jsonl");
  return [options, worst, best, step, limit] {
    using Order = orchestrator::SampleQuery::Order;
    if (*worst && *best) {
      std::cerr << "temper: --worst and --best exclude each other; give one of them\n";
      return kBadInput;
    }
    if (*limit < 1) {
      std::cerr << "temper: --limit: expected at least 1, found 0\n";
      return kBadInput;
    }
    options->query.limit = static_cast<std::size_t>(*limit);
    options->query.step = *step;
    options->query.order = *worst ? Order::Worst : *best ? Order::Best : Order::Newest;
    options->colours = detect_view(STDOUT_FILENO, OutputForm::Auto).colours;
    return run_samples(*options, std::cout, std::cerr);
  };
}

}  // namespace temper::cli
