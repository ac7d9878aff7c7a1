#include "lab/bench.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/json.h"
#include "base/table.h"

namespace cria {
namespace {

using Kind = BenchRow::Kind;

// A named configuration belongs to one kernel or a few; the other variants are left out.
std::vector<std::string> configs_of(Problem& problem, const Variant& variant,
                                    const std::string& wanted) {
  if (wanted.empty()) return {choose_config(problem.stream(), variant.calls.at(0)).name};
  const Device device = problem.stream().device();
  std::vector<std::string> fitting =
      fitting_configs(variant, target_of(device), compute_capability(device));
  if (wanted != "all") std::erase_if(fitting, [&](const auto& name) { return name != wanted; });
  return fitting;
}

struct Entry {
  BenchRow row;
  Contender contender;
};

std::vector<Entry> entries_of(Problem& problem, const std::string& config) {
  std::vector<Entry> entries;
  for (const Variant& variant : problem.variants()) {
    for (const std::string& name : configs_of(problem, variant, config)) {
      auto run = [&variant, name](Stream& s, int turn) { variant.run(s, turn, name); };
      entries.push_back({{Kind::kernel, variant.name, name}, {variant.name, run}});
    }
  }
  if (const Device device = problem.stream().device(); entries.empty())
    fail_unknown_config(problem, config, target_of(device), compute_capability(device));
  for (const Rival& rival : problem.rivals()) entries.push_back({{Kind::rival, rival.name}, rival});
  return entries;
}

Ratio scaled(Ratio ratio, double factor) {
  return {ratio.median * factor, ratio.p10 * factor, ratio.p90 * factor};
}

void relate(BenchResult& result, const Ceiling& ceiling) {
  const double amount = ceiling.in_flops ? result.cost.flops : result.cost.bytes();
  const Timing& top = result.rows.back().timing;
  for (BenchRow& row : result.rows) {
    const double own = row.kind == Kind::ceiling ? ceiling.amount : amount;
    row.rate = own / row.timing.median_us() * (ceiling.in_flops ? 1e-6 : 1e-3);
    row.of_ceiling = scaled(speed_ratio(row.timing, top), own / ceiling.amount);
  }
  if (const BenchRow* rival = result.best(Kind::rival))
    for (BenchRow& row : result.rows)
      if (row.kind == Kind::kernel) row.over_rival = speed_ratio(row.timing, rival->timing);
}

// Who is in the final race. Rivals race alone, because what power-hungry contenders leave of the
// clock differs from sample to sample, and two that follow each other directly see the same.
std::vector<const BenchRow*> finalists_of(const BenchResult& result, FinalRace race) {
  std::vector<const BenchRow*> finalists;
  if (race == FinalRace::rival) {
    const BenchRow *kernel = result.best(Kind::kernel), *rival = result.best(Kind::rival);
    if (kernel && rival) finalists = {kernel, rival};
  } else if (race == FinalRace::ceiling) {
    for (const BenchRow& row : result.rows)
      if (row.kind == Kind::ceiling || &row == result.best(Kind::kernel, row.name))
        finalists.push_back(&row);
  }
  return finalists;
}

void race_finalists(Problem& problem, BenchResult& result, const Ceiling& ceiling,
                    const std::vector<Contender>& contenders, FinalRace race,
                    MeasureOptions options) {
  std::vector<size_t> places;
  std::vector<Contender> racing;
  for (const BenchRow* row : finalists_of(result, race)) {
    places.push_back(row - result.rows.data());
    racing.push_back(contenders[places.back()]);
  }
  if (places.size() < 2) return;
  options.min_rounds = 21;
  options.max_rounds = std::max(options.max_rounds, options.min_rounds);
  options.sample_us *= 2;
  std::vector<Timing> timings = measure(problem.stream(), racing, options);
  const double own = ceiling.in_flops ? result.cost.flops : result.cost.bytes();
  for (size_t i = 0; i < places.size(); ++i) {
    BenchRow& row = result.rows[places[i]];
    if (race == FinalRace::ceiling && row.kind == Kind::kernel)
      row.final_of_ceiling = scaled(speed_ratio(timings[i], timings.back()), own / ceiling.amount);
    if (race == FinalRace::rival && row.kind == Kind::kernel)
      result.final_over_rival = speed_ratio(timings[i], timings.back());
  }
  for (size_t i = 0; i < places.size(); ++i)
    result.rows[places[i]].final_timing = std::move(timings[i]);
}

Json to_json(const Ratio& ratio) {
  return {{"median", ratio.median}, {"p10", ratio.p10}, {"p90", ratio.p90}};
}

const char* name_of(Kind kind) {
  return kind == Kind::kernel ? "kernel" : kind == Kind::rival ? "rival" : "ceiling";
}

Json to_json(const BenchRow& row) {
  Json json = {{"kind", name_of(row.kind)}, {"name", row.name}};
  if (row.kind == Kind::kernel) json["config"] = row.config;
  json["time_us"] = row.timing.median_us();
  json["p10_us"] = row.timing.quantile_us(0.1);
  json["p90_us"] = row.timing.quantile_us(0.9);
  json["rounds"] = row.timing.samples_us.size();
  json["rate"] = row.rate;
  json["of_ceiling"] = to_json(row.of_ceiling);
  if (row.kind == Kind::kernel && row.over_rival.median > 0)
    json["over_rival"] = to_json(row.over_rival);
  if (!row.final_timing.samples_us.empty())
    json["final"] = {{"time_us", row.final_timing.median_us()},
                     {"p10_us", row.final_timing.quantile_us(0.1)},
                     {"p90_us", row.final_timing.quantile_us(0.9)},
                     {"rounds", row.final_timing.samples_us.size()}};
  if (row.final_of_ceiling.median > 0) json["final_of_ceiling"] = to_json(row.final_of_ceiling);
  if (row.kind != Kind::ceiling) {
    json["max_error"] = row.accuracy.max_error;
    json["right"] = row.accuracy.ok;
  }
  return json;
}

std::string show_time(double us) {
  return us < 1e3 ? fmt::format("{:.2f} us", us) : fmt::format("{:.3f} ms", us / 1e3);
}

std::string show_error(const BenchRow& row) {
  if (row.kind == Kind::ceiling) return "";
  const std::string size =
      std::isfinite(row.accuracy.max_error) ? fmt::format("{:.1e}", row.accuracy.max_error) : "NaN";
  return row.accuracy.ok ? size : size + " WRONG";
}

std::string describe_sizes(const BenchResult& result) {
  std::string out;
  for (const Parameter& p : find_problem(result.problem).parameters)
    out += fmt::format(" {}={}", p.name, result.sizes.at(p.name));
  return out + (result.packed ? " packed" : "");
}

}  // namespace

bool BenchResult::all_right() const {
  return std::all_of(rows.begin(), rows.end(), [](const BenchRow& r) { return r.accuracy.ok; });
}

const BenchRow* BenchResult::best(Kind kind, std::string_view name) const {
  const BenchRow* best = nullptr;
  for (const BenchRow& row : rows)
    if (row.kind == kind && row.accuracy.ok && (name.empty() || row.name == name) &&
        (!best || row.timing.median_us() < best->timing.median_us()))
      best = &row;
  return best;
}

BenchResult bench(const ProblemSpec& spec, const ProblemRequest& request,
                  const BenchOptions& options) {
  const std::unique_ptr<Problem> problem = make_problem(spec, request);
  BenchResult result{.problem = spec.name,
                     .device = request.device,
                     .dtype = request.dtype,
                     .sizes = problem->sizes(),
                     .cost = problem->cost(),
                     .sets = problem->sets(),
                     .packed = problem->packed()};
  std::vector<Entry> entries = entries_of(*problem, options.config);
  std::vector<Contender> contenders;
  for (Entry& entry : entries) {
    check_stop(options.measure.stop);
    entry.row.accuracy = problem->check(entry.contender.run);
    contenders.push_back(entry.contender);
    result.rows.push_back(std::move(entry.row));
  }
  const Ceiling ceiling = options.ceiling ? *options.ceiling : problem->ceiling();
  contenders.push_back(ceiling.contender);
  result.rows.push_back({Kind::ceiling, ceiling.contender.name});
  result.unit = ceiling.unit();

  MeasureOptions how = options.measure;
  how.sets = problem->sets();
  std::vector<Timing> timings = measure(problem->stream(), contenders, how);
  for (size_t i = 0; i < timings.size(); ++i) result.rows[i].timing = std::move(timings[i]);
  relate(result, ceiling);
  race_finalists(*problem, result, ceiling, contenders, options.final_race, how);
  return result;
}

std::string to_table(const BenchResult& result, bool all_rivals) {
  using enum Table::Align;
  Table table({{"", left},
               {"config", left},
               {"time"},
               {"p10-p90"},
               {result.unit},
               {"of ceiling"},
               {"vs rival"},
               {"max error"}});
  const BenchRow* rival = result.best(Kind::rival);
  const auto rivals = std::count_if(result.rows.begin(), result.rows.end(),
                                    [](const BenchRow& r) { return r.kind == Kind::rival; });
  for (const BenchRow& row : result.rows) {
    const bool hidden =
        row.kind == Kind::rival && !all_rivals && rival && &row != rival && row.accuracy.ok;
    if (hidden) continue;
    std::string name = row.name;
    if (&row == rival && rivals > 1 && !all_rivals) name += fmt::format(" (best of {})", rivals);
    if (row.kind == Kind::ceiling) name += " (ceiling)";
    const double median = row.timing.median_us();
    table.add_row(
        {name, row.config, show_time(median),
         fmt::format("-{:.1f} +{:.1f} %", 100 * (1 - row.timing.quantile_us(0.1) / median),
                     100 * (row.timing.quantile_us(0.9) / median - 1)),
         fmt::format("{:.4g}", row.rate), fmt::format("{:.1f} %", 100 * row.of_ceiling.median),
         row.over_rival.median > 0 ? fmt::format("{:.3f}x", row.over_rival.median) : "",
         show_error(row)});
  }
  return fmt::format("{} {} on {}:{}\n{}", result.problem, cria::name_of(result.dtype),
                     cria::name_of(result.device), describe_sizes(result), table.to_string());
}

Json to_json(const BenchResult& result) {
  Json json = {{"problem", result.problem},
               {"dtype", cria::name_of(result.dtype)},
               {"sizes", result.sizes},
               {"cost",
                {{"flops", result.cost.flops},
                 {"bytes_read", result.cost.bytes_read},
                 {"bytes_written", result.cost.bytes_written}}},
               {"operand_sets", result.sets},
               {"unit", result.unit},
               {"rows", Json::array()}};
  if (result.packed) json["packed"] = true;
  for (const BenchRow& row : result.rows) json["rows"].push_back(to_json(row));
  if (result.final_over_rival.median > 0)
    json["final_over_rival"] = to_json(result.final_over_rival);
  return json;
}

}  // namespace cria
