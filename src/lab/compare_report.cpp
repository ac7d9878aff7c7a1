// What a comparison of plans says, on a terminal and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <span>

#include "base/json.h"
#include "base/table.h"
#include "lab/compare.h"

namespace cria {
namespace {

constexpr const char* kProduct = "product";  // LaunchRecord::name of the library's

double mib(int64_t bytes) { return double(bytes) / (1 << 20); }

// Four figures, so that microseconds and seconds take the same room.
std::string show_ms(double ms) {
  return fmt::format("{:.{}f}", ms, ms < 10 ? 3 : ms < 100 ? 2 : ms < 1000 ? 1 : 0);
}

// Of fewer rounds than three there is no spread to speak of.
std::string show_speedup(const PlanFigures& f, bool yardstick) {
  if (yardstick) return "1.00x";
  const Ratio& r = f.speedup;
  if (f.turns.samples_us.size() < 3) return fmt::format("{:.2f}x ±?", r.median);
  const double away = std::max(r.p90 - 1, 1 - r.p10);
  if (r.p10 <= 1 && r.p90 >= 1) return fmt::format("same within {:.0f} %", std::ceil(100 * away));
  return fmt::format("{:.2f}x ±{:.0f} %", r.median, std::ceil(50 * (r.p90 - r.p10) / r.median));
}

// A kernel, or a kernel in one configuration, in one step.
struct KernelSum {
  std::string name, config;
  int count = 0;
  double us = 0;
  Cost cost;

  double gb_per_s() const { return cost.bytes() / us * 1e-3; }
  double tflop_per_s() const { return cost.flops / us * 1e-6; }
};

// Most time first; without times, none.
std::vector<KernelSum> sums_of(const PlanFigures& figures, bool by_config) {
  std::map<std::pair<std::string, std::string>, KernelSum> sums;
  for (const LaunchRecord& l : figures.record.launches) {
    if (!l.timed) return {};
    const std::string config = by_config ? l.config : "";
    KernelSum& sum = sums[{l.name, config}];
    sum.name = l.name, sum.config = config;
    sum.count += l.launches, sum.us += l.time_us, sum.cost += l.cost;
  }
  std::vector<KernelSum> out;
  for (auto& [key, sum] : sums) out.push_back(std::move(sum));
  std::ranges::stable_sort(out, std::greater(), &KernelSum::us);
  return out;
}

double total_us(const std::vector<KernelSum>& sums) {
  double total = 0;
  for (const KernelSum& s : sums) total += s.us;
  return total;
}

double product_us(const std::vector<KernelSum>& sums) {
  double total = 0;
  for (const KernelSum& s : sums) total += s.name == kProduct ? s.us : 0;
  return total;
}

std::string to_choice_table(const std::vector<Choice>& choices) {
  if (choices.empty()) return "";
  Table table({{"stage", Table::Align::left},
               {"m"},
               {"n"},
               {"terms"},
               {"by", Table::Align::left},
               {"because", Table::Align::left}});
  for (const Choice& c : choices)
    table.add_row({name_of(c.stage), fmt::format("{}", c.sizes.m), fmt::format("{}", c.sizes.n),
                   fmt::format("{}", c.sizes.k), c.own ? "cria" : "library", c.why});
  return "\n" + table.to_string();
}

// What bounds the plans, in a sentence; there must be several, with times.
std::string conclusion_of(const std::vector<PlanFigures>& plans, double least, double most) {
  constexpr double kNearlyAll = 0.75;
  if (plans.size() < 2) return "";
  if (least >= kNearlyAll)
    return fmt::format(
        "All are bound by library products, {:.0f} to {:.0f} % of a step: fusion saves memory, "
        "hardly "
        "time.\n",
        100 * least, 100 * most);
  const PlanFigures& first = plans[0];
  double bytes = 0, us = 0, total = 0;
  for (const LaunchRecord& l : first.record.launches) {
    total += l.time_us;
    if (l.name == kProduct) continue;
    bytes += l.cost.bytes(), us += l.time_us;
  }
  const bool pays = std::ranges::any_of(plans, [](auto& f) { return f.speedup.p10 > 1; });
  return fmt::format(
      "Kernels other than products take {:.0f} % of {}'s step, {:.2f} of its {:.2f} GB{}.\n",
      100 * us / total, first.plan, bytes * 1e-9, first.record.cost().bytes() * 1e-9,
      pays ? ": there fusion pays" : "");
}

}  // namespace

std::string to_table(const Comparison& comparison, bool wide) {
  struct Column {
    Table::Column head;
    bool main;
    std::function<std::string(const PlanFigures&)> cell;
  };
  const auto number = [](double value, int digits) {
    return fmt::format("{:.{}f}", value, digits);
  };
  const auto ms = [](double StepTimes::*phase) {
    return [phase](const PlanFigures& f) { return show_ms(f.times.*phase); };
  };
  const PlanFigures* first = comparison.plans.data();
  const Column columns[] = {
      {{"plan", Table::Align::left}, true, [](auto& f) { return f.plan; }},
      {{"loss"}, true, [&](auto& f) { return number(f.losses.back(), 4); }},
      {{"ms/step"}, true, [](auto& f) { return show_ms(f.step_ms); }},
      {{"±%"}, true, [&](auto& f) { return number(50 * f.spread, 1); }},
      {{"forward"}, false, ms(&StepTimes::forward_ms)},
      {{"backward"}, false, ms(&StepTimes::backward_ms)},
      {{"optimizer"}, false, ms(&StepTimes::optimizer_ms)},
      {{"samples/s"}, false, [&](auto& f) { return number(f.samples_per_s, 1); }},
      {{"tokens/s"}, true, [&](auto& f) { return number(f.tokens_per_s, 0); }},
      {{"MiB"}, true, [&](auto& f) { return number(mib(f.memory.total()), 0); }},
      {{"peak"}, true, [&](auto& f) { return number(mib(f.peak_bytes), 0); }},
      {{"launches/block"},
       true,
       [](auto& f) {
         return fmt::format("{} + {}", f.record.block_forward, f.record.block_backward);
       }},
      {{"/step"}, false, [](auto& f) { return fmt::format("{}", f.record.count()); }},
      {{"GB moved"}, true, [&](auto& f) { return number(f.record.cost().bytes() * 1e-9, 2); }},
      {{"speed-up"}, true, [&](auto& f) { return show_speedup(f, &f == first); }}};

  std::vector<Table::Column> heads;
  for (const Column& c : columns)
    if (wide || c.main) heads.push_back(c.head);
  Table table(heads);
  for (const PlanFigures& f : comparison.plans) {
    std::vector<std::string> cells;
    for (const Column& c : columns)
      if (wide || c.main) cells.push_back(c.cell(f));
    table.add_row(cells);
  }
  std::string out = table.to_string();
  if (!comparison.in_turn)
    out += fmt::format(
        "The plans ran one after another, not in turn: together they need {:.0f} MiB, and {:.0f} "
        "are free.\n",
        mib(int64_t(comparison.needed_bytes)), mib(int64_t(comparison.free_bytes)));
  return out;
}

std::string to_bounds(const Comparison& comparison) {
  constexpr size_t kNamed = 3, kColumns = 100;
  constexpr std::string_view kRest = "the rest";
  size_t width = 0;
  for (const PlanFigures& f : comparison.plans) width = std::max(width, f.plan.size());
  std::string out;
  double least = 1, most = 0;  // share of products
  for (const PlanFigures& f : comparison.plans) {
    const auto sums = sums_of(f, false);
    const double total = total_us(sums);
    if (total == 0) return "";
    const auto share = [&](double us, std::string_view name) {
      return fmt::format("{:.0f} % {}", 100 * us / total, name);
    };
    std::string line = fmt::format("  {:{}}  ", f.plan, width);
    double left = total;
    for (const KernelSum& s : std::span(sums).first(std::min(kNamed, sums.size()))) {
      const std::string more = share(s.us, s.name == kProduct ? "library products" : s.name) + ", ";
      if (line.size() + more.size() + share(left - s.us, kRest).size() > kColumns) break;
      line += more, left -= s.us;
    }
    out += line + share(left, kRest) + "\n";
    least = std::min(least, product_us(sums) / total);
    most = std::max(most, product_us(sums) / total);
  }
  return "What a step's time goes into, launch by launch:\n" + out +
         conclusion_of(comparison.plans, least, most);
}

std::string to_kernel_table(const PlanFigures& figures) {
  const auto sums = sums_of(figures, true);
  const double total = total_us(sums), products = product_us(sums);
  Table table({{"kernel", Table::Align::left},
               {"configuration", Table::Align::left},
               {"launches"},
               {"us"},
               {"us each"},
               {"share [%]"},
               {"GB/s"},
               {"TFLOP/s"}});
  for (const KernelSum& s : sums)
    table.add_row({s.name, s.config, fmt::format("{}", s.count), fmt::format("{:.0f}", s.us),
                   fmt::format("{:.2f}", s.us / s.count), fmt::format("{:.1f}", 100 * s.us / total),
                   fmt::format("{:.0f}", s.gb_per_s()), fmt::format("{:.1f}", s.tflop_per_s())});
  std::string out = table.to_string();
  if (products > 0)
    out += fmt::format("library products take {:.1f} ms; everything else adds {:.1f} %\n",
                       products * 1e-3, 100 * (total / products - 1));
  return out + to_choice_table(figures.choices);
}

Json to_json(const Comparison& comparison) {
  Json out = {{"in_turn", comparison.in_turn},
              {"needed_bytes", comparison.needed_bytes},
              {"free_bytes", comparison.free_bytes},
              {"plans", Json::array()}};
  for (const PlanFigures& f : comparison.plans) {
    Json plan = {{"plan", f.plan},
                 {"losses", f.losses},
                 {"step_ms", f.step_ms},
                 {"spread", f.spread},
                 {"forward_ms", f.times.forward_ms},
                 {"backward_ms", f.times.backward_ms},
                 {"optimizer_ms", f.times.optimizer_ms},
                 {"samples_per_s", f.samples_per_s},
                 {"tokens_per_s", f.tokens_per_s},
                 {"memory_bytes",
                  {{"weights", f.memory.weights},
                   {"gradients", f.memory.gradients},
                   {"optimizer", f.memory.optimizer},
                   {"activations", f.memory.activations},
                   {"workspace", f.memory.workspace},
                   {"total", f.memory.total()},
                   {"measured_peak", f.peak_bytes}}},
                 {"launches_per_block",
                  {{"forward", f.record.block_forward}, {"backward", f.record.block_backward}}},
                 {"launches_per_step", f.record.count()},
                 {"bytes_moved", f.record.cost().bytes()},
                 {"flops", f.record.cost().flops},
                 {"turns_ms", Json::array()},
                 {"speedup",
                  {{"median", f.speedup.median}, {"p10", f.speedup.p10}, {"p90", f.speedup.p90}}}};
    for (const double us : f.turns.samples_us) plan["turns_ms"].push_back(us * 1e-3);
    const auto sums = sums_of(f, true);
    const double total = total_us(sums);
    for (const KernelSum& s : sums)
      plan["kernels"].push_back({{"kernel", s.name},
                                 {"config", s.config},
                                 {"launches", s.count},
                                 {"us", s.us},
                                 {"share", s.us / total},
                                 {"gb_per_s", s.gb_per_s()},
                                 {"tflop_per_s", s.tflop_per_s()}});
    for (const Choice& c : f.choices)
      plan["choices"].push_back({{"stage", name_of(c.stage)},
                                 {"m", c.sizes.m},
                                 {"n", c.sizes.n},
                                 {"k", c.sizes.k},
                                 {"own", c.own},
                                 {"why", c.why}});
    out["plans"].push_back(std::move(plan));
  }
  return out;
}

}  // namespace cria
