#include "base/error.h"

namespace cria {

Error::Error(const std::string& message) : std::runtime_error(message) {}
Error::~Error() = default;

void fail(const std::string& message) { throw Error(message); }

}  // namespace cria
