// What the compiler and the linker were to put into every program that is installed: they read
// bytes from outside. Read from the files themselves.
#include "core/files.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace temper::test {
namespace {

/// An ELF file of this machine's word size, as far as these tests ask.
class Elf {
 public:
  explicit Elf(const std::string& path) : bytes_(read_file(path).value()) {
    header_ = at<Elf64_Ehdr>(0);
    EXPECT_EQ(std::memcmp(header_.e_ident, ELFMAG, SELFMAG), 0);
    for (std::size_t i = 0; i < header_.e_phnum; ++i)
      programs_.push_back(at<Elf64_Phdr>(header_.e_phoff + i * sizeof(Elf64_Phdr)));
    for (std::size_t i = 0; i < header_.e_shnum; ++i)
      sections_.push_back(at<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr)));
  }
  bool is_position_independent() const { return header_.e_type == ET_DYN; }
  const Elf64_Phdr* program(Elf64_Word type) const {
    for (const Elf64_Phdr& p : programs_) {
      if (p.p_type == type)
        return &p;
    }
    return nullptr;
  }
  /// The value of an entry of the dynamic section; 0: there is none.
  Elf64_Xword dynamic(Elf64_Sxword tag) const {
    const Elf64_Phdr* const p = program(PT_DYNAMIC);
    for (std::size_t i = 0; p != nullptr && i < p->p_filesz / sizeof(Elf64_Dyn); ++i) {
      const auto entry = at<Elf64_Dyn>(p->p_offset + i * sizeof(Elf64_Dyn));
      if (entry.d_tag == tag)
        return entry.d_un.d_val;
    }
    return 0;
  }
  /// Names of functions of other libraries.
  std::set<std::string> imports() const {
    std::set<std::string> names;
    for (const Elf64_Shdr& s : sections_) {
      if (s.sh_type != SHT_DYNSYM)
        continue;
      const Elf64_Shdr& strings = sections_.at(s.sh_link);
      for (std::size_t i = 0; i < s.sh_size / sizeof(Elf64_Sym); ++i) {
        const auto symbol = at<Elf64_Sym>(s.sh_offset + i * sizeof(Elf64_Sym));
        if (symbol.st_shndx == SHN_UNDEF)
          names.insert(bytes_.c_str() + strings.sh_offset + symbol.st_name);
      }
    }
    return names;
  }

 private:
  template <class T>
  T at(std::size_t offset) const {
    T value{};
    EXPECT_LE(offset + sizeof value, bytes_.size());
    if (offset + sizeof value <= bytes_.size())
      std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  const std::string bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> programs_;
  std::vector<Elf64_Shdr> sections_;
};

class Programs : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(OfTheInstallation,
                         Programs,
                         testing::Values(TEMPER_PROGRAMS),
                         [](const auto& program) {
                           std::string name = program.param;
                           name.erase(0, name.rfind('/') + 1);
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(Programs, AreHardened) {
  const Elf elf(GetParam());
  EXPECT_TRUE(elf.is_position_independent()) << "-fPIE -pie";
  const Elf64_Phdr* const stack = elf.program(PT_GNU_STACK);
  ASSERT_NE(stack, nullptr);
  EXPECT_EQ(stack->p_flags & PF_X, 0U) << "the stack can be executed";
  for (const Elf64_Word type : {PT_LOAD, PT_GNU_RELRO}) {
    const Elf64_Phdr* const p = elf.program(type);
    ASSERT_NE(p, nullptr) << type;
    EXPECT_FALSE((p->p_flags & PF_X) != 0 && (p->p_flags & PF_W) != 0);
  }
  EXPECT_TRUE((elf.dynamic(DT_FLAGS) & DF_BIND_NOW) != 0 ||
              (elf.dynamic(DT_FLAGS_1) & DF_1_NOW) != 0)
      << "-Wl,-z,now";
  const std::set<std::string> imports = elf.imports();
  EXPECT_TRUE(imports.contains("__stack_chk_fail")) << "-fstack-protector-strong";
  EXPECT_TRUE(std::ranges::any_of(imports, [](const std::string& name) {
    return name.starts_with("__") && name.ends_with("_chk");
  })) << "-D_FORTIFY_SOURCE=2";
  EXPECT_TRUE(std::ranges::any_of(imports, [](const std::string& name) {
    return name.find("__glibcxx_assert_fail") != std::string::npos;
  })) << "-D_GLIBCXX_ASSERTIONS";
}

}  // namespace
}  // namespace temper::test
