#include "tests/support/liar.hpp"

#include "actors/protocol/catalog.hpp"

#include <limits>

namespace temper::orchestrator::testing {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

/// Numbers near what is there, and numbers that nobody expects.
class Wrong {
 public:
  explicit Wrong(Random& random) : random_(random) {}

  std::uint64_t number(std::uint64_t right) {
    constexpr std::array<std::uint64_t, 5> kOdd{
        0, 1, std::uint64_t{1} << 40, std::numeric_limits<std::int64_t>::max(), ~std::uint64_t{0}};
    switch (random_.below(4)) {
      case 0:
        return right + 1;
      case 1:
        return right - 1;
      case 2:
        return random_.below(32);
      default:
        return kOdd[random_.below(kOdd.size())];
    }
  }
  template <class I>
  void id(I& value) {
    value = I(static_cast<typename I::rep>(number(value.value())));
  }
  void tokens(Tokens& value) {
    value = Tokens(static_cast<std::int64_t>(number(static_cast<std::uint64_t>(value.count()))));
  }
  void text(std::string& value) { value = value.empty() ? "lie" : ""; }
  template <class E>
  void repeat_or_drop(std::vector<E>& list) {
    if (list.empty())
      return;
    if (random_.chance(0.5))
      list.pop_back();
    else
      list.push_back(list[random_.below(list.size())]);
  }
  double real() {
    constexpr std::array kOdd{std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity(),
                              -1e300,
                              0.5};
    return kOdd[random_.below(kOdd.size())];
  }
  Time time(Time right) {
    return right +
           Duration(static_cast<std::int64_t>(random_.below(2'000'000'000)) - 1'000'000'000);
  }

 private:
  Random& random_;
};

void change(event::Generated::Item& item, Random& random) {
  Wrong wrong(random);
  switch (random.below(8)) {
    case 0:
      return wrong.id(item.lease);
    case 1:
      return wrong.id(item.response);
    case 2:
      return wrong.tokens(item.tokens);
    case 3:
      return wrong.tokens(item.prompt);
    case 4:
      return wrong.repeat_or_drop(item.segments);
    case 5:
      if (!item.segments.empty())
        wrong.id(item.segments[random.below(item.segments.size())].version);
      return;
    case 6:
      if (!item.segments.empty())
        wrong.tokens(item.segments[random.below(item.segments.size())].tokens);
      return;
    default:
      item.finish = static_cast<actors::FinishReason>(random.below(4));
  }
}

void change(event::Trained& e, Random& random) {
  Wrong wrong(random);
  switch (random.below(5)) {
    case 0:
      return wrong.id(e.lease);
    case 1:
      return wrong.id(e.version);
    case 2:
      return wrong.repeat_or_drop(e.groups);
    case 3:
      return wrong.tokens(e.metrics.tokens);
    default:
      if (!e.groups.empty())
        wrong.id(e.groups.front());
  }
}

/// The same message, with one thing changed.
Event changed(Event event, Random& random) {
  Wrong wrong(random);
  const bool coin = random.chance(0.5);
  std::visit(
      Overloaded{
          [&](event::ActorReady& e) {
            if (e.weights)
              wrong.id(*e.weights);
          },
          [&](event::Generated& e) {
            if (e.items.empty() || random.chance(0.2))
              wrong.repeat_or_drop(e.items);
            else
              change(e.items[random.below(e.items.size())], random);
          },
          [&](event::ReferenceScored& e) { wrong.id(e.lease); },
          [&](event::Judged& e) {
            if (coin)
              wrong.id(e.lease);
            else if (e.items.empty() || random.chance(0.5))
              wrong.repeat_or_drop(e.items);
            else
              e.items.front() = {wrong.real(), random.chance(0.5)};
          },
          [&](event::Trained& e) { change(e, random); },
          [&](event::Prepared& e) { wrong.id(e.lease); },
          [&](event::WeightsStaged& e) { coin ? wrong.id(e.version) : wrong.text(e.error); },
          [&](event::WeightsCommitted& e) { coin ? wrong.id(e.version) : wrong.text(e.error); },
          [&](event::CheckpointSaved& e) { coin ? wrong.id(e.version) : wrong.text(e.error); },
          [&](event::Switched& e) {
            if (coin)
              e.action = static_cast<actors::SwitchAction>(random.below(8));
            else
              e.cost.host_after = Bytes(static_cast<std::int64_t>(wrong.number(0)));
          },
          [&](event::Activity& e) { wrong.repeat_or_drop(e.spans); },
          [](auto&) {}},
      event);
  return event;
}

/// Of any kind that an actor can say, about something that may well be.
Event another(ActorId actor, const Scheduler& scheduler, Random& random) {
  Wrong wrong(random);
  const DistQueue& queue = scheduler.queue();
  const std::uint64_t newest = queue.next_lease().value();
  const LeaseId lease(newest - std::min(newest, random.below(6)));
  const PolicyVersion version(scheduler.progress().version.value() + random.below(3) - 1);
  const Lease* found = queue.find(lease);
  const std::vector<ResponseId> of_lease =
      found != nullptr ? found->responses : std::vector<ResponseId>();
  switch (random.below(9)) {
    case 0:
      return event::ActorReady{actor, version};
    case 1: {
      event::Generated e{actor, {}};
      for (const ResponseId r : of_lease)
        e.items.push_back({lease, r, Tokens(5), Tokens(2), {{version, Tokens(2)}}});
      return e;
    }
    case 2:
      return event::ReferenceScored{actor, lease};
    case 3:
      return event::Judged{
          actor, lease, std::vector<event::Judged::Item>(of_lease.size(), {0.5, false})};
    case 4: {
      event::Trained e{actor, lease, version, {}, {}};
      for (const ResponseId r : of_lease) {
        if (e.groups.empty() || e.groups.back() != queue.group_of(r))
          e.groups.push_back(queue.group_of(r));
      }
      return e;
    }
    case 5:
      return event::WeightsStaged{actor, version, ""};
    case 6:
      return event::WeightsCommitted{actor, version, ""};
    case 7:
      return event::CheckpointSaved{version, ""};
    default: {
      const Time begin = wrong.time(Time(std::chrono::seconds(1)));
      return event::Activity{actor, {{actors::CardState::Decode, begin, wrong.time(begin)}}};
    }
  }
}

}  // namespace

std::uint32_t tag_of(const Event& event) {
  return std::visit(
      Overloaded{[](const event::ActorReady& e) {
                   return e.weights ? actors::TrainerReady::kTag : actors::Ready::kTag;
                 },
                 [](const event::Generated&) { return actors::Generated::kTag; },
                 [](const event::ReferenceScored&) { return actors::ReferenceScored::kTag; },
                 [](const event::Judged&) { return actors::Judged::kTag; },
                 [](const event::Trained&) { return actors::Trained::kTag; },
                 [](const event::Prepared&) { return actors::CountedPrepared::kTag; },
                 [](const event::WeightsStaged&) { return actors::WeightsStaged::kTag; },
                 [](const event::WeightsCommitted&) { return actors::WeightsCommitted::kTag; },
                 [](const event::Switched&) { return actors::Switched::kTag; },
                 [](const event::CheckpointSaved&) { return actors::StateSaved::kTag; },
                 [](const event::Activity&) { return actors::Activity::kTag; },
                 [](const auto&) { return std::uint32_t{0}; }},
      event);
}

Event lie_about(const Event& truth, ActorId actor, const Scheduler& scheduler, Random& random) {
  return random.chance(0.5) ? changed(truth, random) : another(actor, scheduler, random);
}

}  // namespace temper::orchestrator::testing
