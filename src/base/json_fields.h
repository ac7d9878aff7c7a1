// Checked access to an object of JSON from elsewhere. An Error names the place and the field. The
// fields that are null count as absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/json.h"

namespace cria {

template <class J>  // Json or JsonMap
class JsonFields {
 public:
  // `where` is the file, or the file and the way to the object in it.
  JsonFields(const J& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) fail_f("{} is not a JSON object", where_);
  }

  const std::string& where() const { return where_; }

  const J* find(const std::string& name) const {
    const auto it = json_.find(name);
    return it == json_.end() || it->is_null() ? nullptr : &*it;
  }
  bool has(const std::string& name) const { return find(name) != nullptr; }
  const J& need(const std::string& name) const {
    const J* value = find(name);
    if (value == nullptr) fail_f("{} has no \"{}\"", where_, name);
    return *value;
  }

  JsonFields child(const std::string& name) const { return {need(name), where_ + "." + name}; }
  std::optional<JsonFields> optional_child(const std::string& name) const {
    return has(name) ? std::optional(child(name)) : std::nullopt;
  }
  // The objects of a list; none without the list.
  std::vector<JsonFields> children(const std::string& name) const {
    std::vector<JsonFields> out;
    if (!has(name)) return out;
    const J& list = need(name);
    if (!list.is_array()) fail_f("{}: \"{}\" must be a list", where_, name);
    for (size_t i = 0; i < list.size(); ++i)
      out.emplace_back(list[i], fmt::format("{}.{}[{}]", where_, name, i));
    return out;
  }

  std::string text(const std::string& name) const {
    const J& value = need(name);
    if (!value.is_string()) fail_f("{}: \"{}\" must be a string", where_, name);
    return value.template get<std::string>();
  }
  std::string text(const std::string& name, const std::string& otherwise) const {
    return has(name) ? text(name) : otherwise;
  }

  bool flag(const std::string& name, bool otherwise) const {
    const J* value = find(name);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) fail_f("{}: \"{}\" must be true or false", where_, name);
    return value->template get<bool>();
  }

  double number(const std::string& name) const {
    const J& value = need(name);
    if (!value.is_number()) fail_f("{}: \"{}\" must be a number", where_, name);
    return value.template get<double>();
  }
  double number(const std::string& name, double otherwise) const {
    return has(name) ? number(name) : otherwise;
  }

  // A whole number from low >= 0 to high.
  int whole(const std::string& name, int low, int high) const {
    return whole_of(need(name), name, low, high);
  }
  int whole_of(const J& value, std::string_view name, int low, int high) const {
    // Negative numbers are large as unsigned ones, and so out of range.
    const bool is_whole = value.is_number_integer();
    const uint64_t x = is_whole ? value.template get<uint64_t>() : 0;
    if (!is_whole || x < static_cast<uint64_t>(low) || x > static_cast<uint64_t>(high))
      fail_f("{}: \"{}\" must be a whole number from {} to {}", where_, name, low, high);
    return static_cast<int>(x);
  }

 private:
  const J& json_;
  std::string where_;
};

}  // namespace cria
