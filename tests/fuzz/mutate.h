// Changes to valid input that a parser should survive: of bytes, and of the values in JSON.
#pragma once

#include <string>

#include "base/json.h"
#include "base/rng.h"

namespace cria::fuzz {

// A few changes: bits, bytes, ranges removed, repeated or put elsewhere, hostile words put in.
std::string mutate_bytes(std::string bytes, Rng& rng);

// A few values replaced, removed, renamed or copied elsewhere.
Json mutate_json(Json json, Rng& rng);

}  // namespace cria::fuzz
