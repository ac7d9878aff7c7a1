#include "cli/remembered_options.h"

#include <algorithm>

#include "base/format.h"

namespace cria {

Json given_options(const CLI::App& command, std::span<const std::string_view> forgotten) {
  Json out = Json::object();
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->count() > 0 && std::ranges::find(forgotten, name) == forgotten.end())
      out[name] = option->results();
  }
  return out;
}

void give_options(CLI::App& command, const Json& options, const std::string& where) {
  auto refuse = [&](const std::string& name, const std::string& why) {
    fail_f("{} remembers {}, {}: correct \"options\" in its training.json", where, name, why);
  };
  if (!options.is_object()) refuse("options", "which are no JSON object");
  for (const auto& [name, values] : options.items()) {
    CLI::Option* option = command.get_option_no_throw(name);
    if (!option) refuse(name, "which is no option of this command");
    if (option->count() > 0) continue;
    try {
      option->add_result(values.get<std::vector<std::string>>());
      option->run_callback();
    } catch (const nlohmann::json::exception&) {
      refuse(name, "but not as a list of texts");
    } catch (const CLI::Error& error) {
      refuse(name, error.what());
    } catch (const Error& error) {
      refuse(name, error.what());
    }
  }
}

}  // namespace cria
