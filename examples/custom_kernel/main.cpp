// Runs the kernel on the best device here (or the one named as the argument) and checks the result.
#include <cmath>
#include <cstdio>
#include <vector>

#include "cria/kernels/launch.h"
#include "cria/runtime/buffer.h"
#include "embeddings_kernels.h"
#include "unit_rows.h"

using cria::embeddings::UnitRowsArgs;

int main(int argc, char** argv) try {
  constexpr int kRows = 1000, kCols = 300;
  std::vector<float> x(kRows * kCols), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(float(i));

  cria::Stream stream(cria::parse_device(argc > 1 ? argv[1] : "auto"));
  const size_t bytes = x.size() * sizeof(float);
  cria::Buffer device_x(stream.device(), bytes), device_y(stream.device(), bytes);
  device_x.copy_from_host(x.data(), bytes);
  cria::launch(stream,
               UnitRowsArgs<float>{.x = cria::matrix_of(device_x.as<float>(), kRows, kCols),
                                   .y = cria::matrix_of(device_y.as<float>(), kRows, kCols)},
               cria::embeddings_kernels());
  device_y.copy_to_host(y.data(), bytes);

  double worst = 0;  // distance of a row's length from 1
  for (int r = 0; r < kRows; ++r) {
    double squares = 0;
    for (int c = 0; c < kCols; ++c) squares += double(y[r * kCols + c]) * y[r * kCols + c];
    worst = std::fmax(worst, std::abs(std::sqrt(squares) - 1));
  }
  const bool right = worst < 1e-5;
  std::printf("%s on %s: %d rows of length 1, off by at most %.1e: %s\n", "unit_rows",
              name_of(stream.device()).c_str(), kRows, worst, right ? "right" : "WRONG");
  return right ? 0 : 1;
} catch (const cria::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
