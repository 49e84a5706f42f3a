// Whether texts are rendered by a chat template.
#pragma once

#include "core/describe.hpp"

namespace temper {

namespace actors {
enum class TemplateKind { None, Chat };
}  // namespace actors

template <>
struct EnumNames<actors::TemplateKind> {
  static constexpr std::array<std::pair<actors::TemplateKind, std::string_view>, 2> value{
      {{actors::TemplateKind::None, "none"}, {actors::TemplateKind::Chat, "chat"}}};
};

}  // namespace temper
