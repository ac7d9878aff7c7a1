#include "cli/remembered_options.h"

#include "base/format.h"

namespace cria {

Json given_options(const CLI::App& command) {
  Json out = Json::object();
  for (const CLI::Option* option : command.get_options())
    if (option->count() > 0 && option->get_configurable())
      out[option->get_name()] = option->results();
  return out;
}

void give_options(CLI::App& command, const Json& options, const std::string& where) {
  auto refuse = [&](const std::string& name, const std::string& why) {
    fail_f("{} remembers {}, {}: correct \"options\" in its training.json", where, name, why);
  };
  if (!options.is_object()) refuse("options", "which are no JSON object");
  for (const auto& [name, values] : options.items()) {
    CLI::Option* option = command.get_option_no_throw(name);
    if (!option || !option->get_configurable() || option->count() > 0) continue;
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
