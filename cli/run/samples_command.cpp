#include "cli/run/samples_command.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/view/terminal_view.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>

namespace temper::cli {
namespace {

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

/// Text of others is shown, not obeyed: escapes of the terminal become visible.
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

void print(const Sample& s, Colours colours, std::ostream& out) {
  const bool coloured = colours == Colours::On;
  const auto faint = [&](const std::string& text) {
    return coloured ? "\x1b[2m" + text + "\x1b[0m" : text;
  };
  std::string head =
      fmt::format("step {}  group {}.{}  reward {:g}", s.step, s.group, s.place, s.reward);
  for (const auto& [name, part] : s.rewards)
    head += fmt::format("  {} {:g}", name, part);
  if (s.age)
    head += fmt::format("  age {}", *s.age);
  head += fmt::format("  {} tokens{}", s.length, versions_text(s));
  if (s.outcome != orchestrator::Outcome::Trained)
    head += fmt::format("  {}: {}", name_of(s.outcome), s.reason);
  out << head << '\n'
      << faint("  prompt    ") << shown(s.prompt) << '\n'
      << faint("  response  ") << shown(s.response) << '\n';
  if (!s.answer.empty())
    out << faint("  answer    ") << shown(s.answer) << '\n';
  out << '\n';
}

/// Samples are there, but none that was asked for.
std::string nothing_matches(const SamplesOptions& options) {
  orchestrator::SampleQuery all;
  all.limit = 1;
  std::string text = "no sample";
  if (options.query.step)
    text += fmt::format(" of step {}", *options.query.step);
  if (!options.query.text.empty())
    text += fmt::format(" with \"{}\"", options.query.text);
  const auto newest = orchestrator::find_samples(options.run, all);
  if (newest && !newest->samples.empty()) {
    text += fmt::format(
        "; there are {}, the newest of step {} (`samples.share` says how many are "
        "kept)",
        newest->matches,
        newest->samples.back().sample.step);
  }
  return text;
}

}  // namespace

int run_samples(const SamplesOptions& options, std::ostream& out, std::ostream& err) {
  const auto found = orchestrator::find_samples(options.run, options.query);
  if (!found) {
    err << "temper: " << found.error().context << '\n';
    return exit_code_of(found.error());
  }
  for (const orchestrator::FoundSample& f : found->samples) {
    if (options.json)
      out << f.line << '\n';
    else
      print(f.sample, options.colours, out);
  }
  if (found->matches == 0) {
    err << fmt::format("temper: {}\n", nothing_matches(options));
    return kFound;
  }
  if (!options.json)
    out << fmt::format("{} of {} samples\n", found->samples.size(), found->matches);
  return kDone;
}

Handler samples_command(Flags& flags) {
  const auto options = std::make_shared<SamplesOptions>();
  const auto worst = std::make_shared<bool>(false);
  const auto best = std::make_shared<bool>(false);
  const auto step = std::make_shared<std::optional<std::uint64_t>>();
  const auto limit = std::make_shared<int>(10);
  flags.argument("run", options->run, "Folder of the run");
  flags.number("--step", *step, "Of this update alone");
  flags.text("--grep", options->query.text, "Only where prompt, response or answer has this text");
  flags.flag("--worst", *worst, "The lowest rewards first, instead of the newest last");
  flags.flag("--best", *best, "The highest rewards first");
  flags.number("--limit", *limit, "Most samples shown");
  flags.json(options->json, "The lines of samples.jsonl as they are");
  return [options, worst, best, step, limit] {
    using Order = orchestrator::SampleQuery::Order;
    if (*worst && *best) {
      std::cerr << "temper: --worst and --best do not go together\n";
      return kBadInput;
    }
    if (*limit < 1) {
      std::cerr << "temper: --limit must be at least 1\n";
      return kBadInput;
    }
    options->query.limit = static_cast<std::size_t>(*limit);
    options->query.step = *step;
    options->query.order = *worst ? Order::Worst : *best ? Order::Best : Order::Newest;
    options->colours = detect_view(STDOUT_FILENO, Wish::Auto).colours;
    return run_samples(*options, std::cout, std::cerr);
  };
}

}  // namespace temper::cli
