#include "base/error.h"

namespace cria {
namespace {

// Messages quote files, and what a file says must not talk to the terminal: control characters,
// those of UTF-8 (C2 80 to C2 9F) among them, are shown as \x1b.
std::string without_controls(const std::string& text) {
  std::string out;
  const auto show = [&](unsigned char byte) {
    constexpr const char* kDigits = "0123456789abcdef";
    out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0)
      show(byte), show(next), ++i;
    else if (byte < 0x20 || byte == 0x7f)
      show(byte);
    else
      out += text[i];
  }
  return out;
}

}  // namespace

Error::Error(const std::string& message) : std::runtime_error(without_controls(message)) {}
Error::~Error() = default;

void fail(const std::string& message) { throw Error(message); }

}  // namespace cria
