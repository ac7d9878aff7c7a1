// JSON and text files. Every failure is an Error that names the file and what to do.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace cria {

using Json = nlohmann::ordered_json;

std::string read_text(const std::filesystem::path& path);

// Writes a temporary file beside `path` and renames it: a reader sees the old text or the new one,
// never a part.
void write_text(const std::filesystem::path& path, std::string_view text);

Json read_json(const std::filesystem::path& path);
void write_json(const std::filesystem::path& path, const Json& json);

}  // namespace cria
