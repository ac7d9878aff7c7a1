#include "cli/values.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>

#include "base/format.h"

namespace cria {
namespace {

bool may_be_empty(const CLI::Option& option) {
  return option.get_name() == "PROMPT" || option.get_name() == "--prompt";
}

// An empty text when the digits are a T.
template <class T>
std::string why_not(const std::string& text) {
  T value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc()) return "";
  using Limits = std::numeric_limits<T>;
  return fmt::format("{} is not in range: {} to {}", text, Limits::min(), Limits::max());
}

// CLI11 reads 0100 as octal, and takes other numbers for those that do not fit. What is no number
// it refuses.
std::string check_number(std::string& text, bool is_signed) {
  const size_t begin = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  const bool decimal =
      text.size() > begin && text.find_first_not_of("0123456789", begin) == std::string::npos;
  if (!decimal) return "";
  const size_t first = std::min(text.find_first_not_of('0', begin), text.size() - 1);
  text.erase(begin, first - begin);
  if (text[0] == '+') text.erase(0, 1);
  return is_signed ? why_not<int64_t>(text) : why_not<uint64_t>(text);
}

void check_value(CLI::Option& option) {
  const std::string type = option.get_type_name();
  const bool is_signed = type.starts_with("INT"), whole = is_signed || type.starts_with("UINT");
  const bool empty = may_be_empty(option);
  option.transform(CLI::Validator(
      [=](std::string& text) -> std::string {
        if (text.empty()) return empty ? "" : "a value is missing";
        return whole ? check_number(text, is_signed) : "";
      },
      ""));
}

}  // namespace

void check_values(CLI::App& program) {
  for (CLI::App* command : program.get_subcommands({}))
    for (CLI::Option* option : command->get_options())
      if (option->get_items_expected_max() > 0) check_value(*option);
}

}  // namespace cria
