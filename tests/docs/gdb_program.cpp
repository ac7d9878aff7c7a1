// Runs docs/softmax.h on one thread, for the debugger session in docs/tile.md.
#include "docs/softmax.h"

namespace {

struct OneThread {
  template <class F>
  void run(int64_t tasks, F f) {
    for (int64_t t = 0; t < tasks; ++t) f(t, 0);
  }
  void pause() {}
  std::byte* scratch(int, size_t) { return nullptr; }
};

}  // namespace

int main() {
  using namespace cria::docs;
  using Kernel = Softmax<float, BlockConfig<1024, 128>>;
  float x[] = {1, 2, 3, 4, 1, 1, 1, 1}, y[8];
  OneThread executor;
  cria::tile::launch<Kernel>(executor,
                             {cria::matrix_of<const float>(x, 2, 4), cria::matrix_of(y, 2, 4)});
}
