// print("name", tile): the tile's values, the middle of long rows and columns left out.
#pragma once

namespace cria::tile {

// `program` is its three indices.
void print_tile(const char* name, const int (&program)[3], const float* values, int rows, int cols);

}  // namespace cria::tile
