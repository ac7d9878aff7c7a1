// What the vendors' libraries do with operands of a problem, its rivals, as plans would have it:
// where operands have gaps the library runs over them, which are zeros and stay so.
#pragma once

#include "lab/operand.h"
#include "runtime/product.h"

namespace cria {

// The product c = op(a) op(b) of operands laid out like these; `how` says what is transposed, in
// which precision, and what it is multiplied by. It runs over gaps in every extent that lies along
// rows somewhere, as the products of plans do (see plans/products.h), and not over those that are
// rows of both operands, such as tokens.
Product product_of(Product how, const Operand& a, const Operand& b, const Operand& c);

// y = x'; an Error where has_library_transpose() says no.
void library_transpose(Stream& stream, const Operand& x, const Operand& y);

}  // namespace cria
