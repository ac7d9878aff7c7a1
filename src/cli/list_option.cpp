#include "cli/list_option.h"

#include <charconv>
#include <cstdint>

#include "base/format.h"

namespace cria {
namespace {

template <class T>
T parse(const std::string& word) {
  if (word.empty()) fail("there is nothing between two commas");
  if constexpr (std::is_same_v<T, std::string>) {
    return word;
  } else {
    T value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size())
      fail_f("\"{}\" is no whole number up to {}", word, std::numeric_limits<T>::max());
    return value;
  }
}

}  // namespace

template <class T>
CLI::Option* add_list_option(CLI::App& command, const std::string& name, std::vector<T>& values,
                             const std::string& help) {
  const auto take = [name, &values](const std::vector<std::string>& words) {
    values.clear();
    try {
      for (const std::string& list : words) {
        size_t begin = 0;
        for (size_t comma; (comma = list.find(',', begin)) != std::string::npos; begin = comma + 1)
          values.push_back(parse<T>(list.substr(begin, comma - begin)));
        values.push_back(parse<T>(list.substr(begin)));
      }
    } catch (const Error& error) {
      throw CLI::ValidationError(name.substr(0, name.find(',')), error.what());
    }
  };
  return command.add_option_function<std::vector<std::string>>(name, take, help);
}

template CLI::Option* add_list_option(CLI::App&, const std::string&, std::vector<int32_t>&,
                                      const std::string&);
template CLI::Option* add_list_option(CLI::App&, const std::string&, std::vector<int64_t>&,
                                      const std::string&);
template CLI::Option* add_list_option(CLI::App&, const std::string&, std::vector<std::string>&,
                                      const std::string&);

}  // namespace cria
