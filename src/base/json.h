// JSON and text files. Every failure is an Error that names the file and what to do.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace cria {

std::string read_text(const std::filesystem::path& path);

// A reader sees the old text or the new one, never a part, even after a crash (durable_file.h).
void write_text(const std::filesystem::path& path, std::string_view text);

// An Error when the text is a Git LFS pointer: the few lines that Git leaves in place of a large file
// when LFS is not installed.
void refuse_lfs_pointer(std::string_view text, const std::string& where);

// Nesting is limited and a key that appears twice is an Error, here as below.
Json read_json(const std::filesystem::path& path);
// Numbers that are not finite become null, bytes that are no UTF-8 the replacement character.
void write_json(const std::filesystem::path& path, const Json& json);

// JSON that may be large. `where` names the text in errors.
JsonMap parse_json_map(std::string_view text, const std::string& where);

}  // namespace cria
