// The built program trains, resumes and generates.
#include <sched.h>

#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>

#include "cli/cli.h"

namespace cria::test {
namespace {

TEST_F(Cli, TrainsResumesAndGenerates) {
  CliOutput output =
      run("train --config debug --device cpu --validate-every 5 --save-every 0 --out " +
          file("run") + " --steps 5 --json " + file("log"));
  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("validation loss"), std::string::npos) << output.out;
  EXPECT_NE(output.out.find("near ln(vocabulary) = 5.5452, as it should be"), std::string::npos)
      << output.out;
  EXPECT_NE(output.out.find(" MiB planned, "), std::string::npos) << output.out;
  EXPECT_NE(output.out.find(" samples/s "), std::string::npos) << output.out;
  output =
      run("train --resume --device cpu --steps 7 --out " + file("run") + " --json " + file("log"));
  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("resumed at step 5"), std::string::npos) << output.out;
  EXPECT_EQ(output.out.find("ln(vocabulary)"), std::string::npos) << output.out;
  EXPECT_NE(read_text(file("log")).find("{\"step\":7,\"loss\":"), std::string::npos);

  const std::string generate = "generate --device cpu --quiet --tokens 20 --model " +
                               file("run/latest") + " --temperature 1 ";
  const std::string first = run(generate + "--seed 1 Hello").out;
  EXPECT_TRUE(first.starts_with("Hello")) << first;
  EXPECT_EQ(first, run(generate + "--seed 1 Hello").out);
  EXPECT_NE(first, run(generate + "--seed 2 Hello").out);
  output =
      run("generate --device cpu --tokens 20 --context 8 --model " + file("run/latest") + " Hello");
  EXPECT_NE(output.err.find("the context of 8 tokens is full"), std::string::npos) << output.err;

  // A model may end its texts with any of several tokens: here with half of all.
  const fs::path config = file("run/latest/config.json");
  Json json = read_json(config);
  std::vector<int> ends(128);
  std::iota(ends.begin(), ends.end(), 0);
  json["eos_token_id"] = ends;
  write_json(config, json);
  ASSERT_EQ(run(generate + "Hello --json " + file("ended")).exit_code, 0);
  const auto tokens = read_json(file("ended")).at("tokens").get<std::vector<int>>();
  EXPECT_LT(tokens.size(), 20u);
  for (const int token : tokens) EXPECT_GE(token, 128);

  output = run("logits --device cpu --tokens 1,2,3 --model " + file("run/latest") + " --json " +
               file("logits"));
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(read_json(file("logits")).at("logits").size(), 3u);
}

TEST_F(Cli, AFirstLossFarFromAGuessSaysWhy) {
  const CliOutput output = run("train --config debug --device cpu --steps 1 --init-std 1");
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("and should be near ln(vocabulary) = 5.5452"), std::string::npos)
      << output.out;
  EXPECT_EQ(output.out.find("as it should be"), std::string::npos) << output.out;
}

// A resumed run needs no more than its folder: every option is that of its beginning, unless given.
TEST_F(Cli, ResumesWithTheOptionsOfItsBeginning) {
  const std::string begin =
      "train --config debug --device cpu --plan fused --lr 0.01 --warmup 2 --batch 3 --seq 24 "
      "--seed 7 --save-every 4 --keep 9 --recompute --json ";
  ASSERT_EQ(run(begin + file("whole") + " --steps 8 --out " + file("a")).exit_code, 0);
  fs::create_directories(file("b"));
  fs::copy(file("a/step-000004"), file("b/step-000004"), fs::copy_options::recursive);
  fs::create_symlink("step-000004", file("b/latest"));
  const std::string resume = "train --resume --device cpu --out " + file("b");
  const CliOutput output = run(resume + " --json " + file("rest"));
  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("resumed at step 4"), std::string::npos) << output.out;
  auto losses = [&](const std::string& log) {
    std::map<int64_t, std::pair<double, double>> by_step;
    std::istringstream lines(read_text(file(log)));
    for (std::string line; std::getline(lines, line);)
      if (const Json json = Json::parse(line); json.contains("loss"))
        by_step[json["step"]] = {json["loss"], json["learning_rate"]};
    return by_step;
  };
  auto whole = losses("whole");
  ASSERT_EQ(whole.size(), 8u);
  whole.erase(whole.begin(), whole.upper_bound(4));
  EXPECT_EQ(whole, losses("rest"));

  EXPECT_EQ(run(resume + " --steps 9").exit_code, 0);
  expect_refused(resume + " --batch 4", "batch 3");
  Json progress = read_json(file("b/latest/training.json"));
  progress["options"]["--lr"] = Json::array({"fast"});
  write_json(file("b/latest/training.json"), progress);
  expect_refused(resume, "--lr");
  EXPECT_EQ(run(resume + " --lr 0.01 --steps 10").exit_code, 0);
}

// A model of sizes of one's own goes on as it was begun, and from nothing else.
TEST_F(Cli, ResumesAModelOfItsOwnSizes) {
  const std::string begin =
      "train --config debug --device cpu --dim 96 --heads 3 --layers 1 "
      "--vocab 300 --init-std 0.000001 --steps 1 --out " +
      file("run") + " --json " + file("log");
  ASSERT_EQ(run(begin).exit_code, 0);
  const Json config = read_json(file("run/latest/config.json"));
  const std::pair<const char*, int> sizes[] = {
      {"hidden_size", 96}, {"num_attention_heads", 3}, {"num_key_value_heads", 3},
      {"head_dim", 32},    {"num_hidden_layers", 1},   {"intermediate_size", 240},
      {"vocab_size", 300}};
  for (const auto& [name, size] : sizes) EXPECT_EQ(config.at(name), size) << name;
  // From nearly equal weights every token is equally likely.
  const std::string log = read_text(file("log"));
  EXPECT_NEAR(Json::parse(log.substr(0, log.find('\n'))).at("first_loss").get<double>(),
              std::log(300), 1e-3);
  EXPECT_EQ(read_json(file("run/latest/training.json")).at("options").at("--init-std"),
            Json::array({"0.000001"}));

  const std::string resume = "train --resume --device cpu --steps 2 --out " + file("run");
  expect_refused(resume + " --layers 2", "leave out --config and options that change its sizes");
  const CliOutput output = run(resume + " --layers 1");
  EXPECT_NE(output.out.find("resumed at step 1"), std::string::npos) << output.err;
  EXPECT_EQ(read_json(file("run/latest/config.json")), config);
}

// What programs that are started meanwhile find: threads asked for, and one core if `alone`.
class Workers {
 public:
  Workers(const char* threads, bool alone) {
    if (const char* before = std::getenv("CRIA_THREADS")) threads_before_ = before;
    threads ? ::setenv("CRIA_THREADS", threads, 1) : ::unsetenv("CRIA_THREADS");
    ::sched_getaffinity(0, sizeof(cores_before_), &cores_before_);
    if (!alone) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &cores_before_)) CPU_SET(core, &one);
    ::sched_setaffinity(0, sizeof(one), &one);
  }
  ~Workers() {
    threads_before_ ? ::setenv("CRIA_THREADS", threads_before_->c_str(), 1)
                    : ::unsetenv("CRIA_THREADS");
    ::sched_setaffinity(0, sizeof(cores_before_), &cores_before_);
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

 private:
  std::optional<std::string> threads_before_;
  cpu_set_t cores_before_;
};

// The steps are large enough that products are cut into blocks and sums into shares.
TEST_F(Cli, TheBitsAreTheSameOnAnyNumberOfCores) {
  struct Case {
    const char* threads;
    bool alone;
  };
  std::map<std::string, std::string> first;
  const auto expect_same = [&](const std::string& what, const std::string& got) {
    ASSERT_FALSE(got.empty()) << what;
    EXPECT_TRUE(first.try_emplace(what, got).first->second == got) << what << " differs";
  };
  for (const Case& c : {Case{"1", false}, {"2", false}, {"3", false}, {nullptr, true}}) {
    SCOPED_TRACE(std::string(c.threads ? c.threads : "default") + (c.alone ? ", one core" : ""));
    const Workers workers(c.threads, c.alone);
    for (const std::string plan : {"baseline", "flash"}) {
      const std::string out = file("run");
      fs::remove_all(out);
      const CliOutput trained =
          run("train --config debug --device cpu --batch 16 --seq 64 --steps 3 --lr 0.01 --plan " +
              plan + " --validate-every 3 --save-every 0 --out " + out + " --json " + file("log"));
      ASSERT_EQ(trained.exit_code, 0) << trained.err;
      expect_same(plan + "'s weights", read_text(out + "/latest/model.safetensors"));
      expect_same(plan + "'s moments", read_text(out + "/latest/optimizer.safetensors"));
      const std::string log = read_text(file("log"));
      expect_same(plan + "'s validation", log.substr(log.find("{\"step\":3,\"validation_loss\"")));
    }
    ASSERT_EQ(run("logits --device cpu --tokens 1,2,3,4,5,6,7,8,9 --model " + file("run/latest") +
                  " --json " + file("logits"))
                  .exit_code,
              0);
    expect_same("logits", read_json(file("logits")).at("logits").dump());
    expect_same("text", run("generate --device cpu --quiet --tokens 50 --seed 3 --temperature 1 "
                            "--model " +
                            file("run/latest") + " Hello")
                            .out);
  }
}

TEST_F(Cli, AResumeNamesTheConditionsThatDiffer) {
  const std::string out = file("run");
  ASSERT_EQ(run("train --config debug --device cpu --steps 2 --out " + out).exit_code, 0);
  const std::string resume = "train --resume --device cpu --out " + out + " --steps ";
  EXPECT_EQ(run(resume + "3").err, "");
  {
    const Workers workers("1", true);
    EXPECT_EQ(run(resume + "4").err, "") << "workers change no bits";
  }
  const std::string state = out + "/latest/training.json";
  Json progress = read_json(state);
  Json& conditions = progress.at("conditions");
  conditions.at("products") = "pebbles 1.0";
  const std::string config = conditions.at("configurations").at("adamw").at(0);
  conditions["configurations"]["adamw"] = {"by_hand"};
  write_json(state, progress);
  const CliOutput output = run(resume + "5");
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_TRUE(output.err.starts_with("cria: warning: ")) << output.err;
  EXPECT_EQ(std::ranges::count(output.err, '\n'), 1) << output.err;
  EXPECT_NE(output.err.find("products by pebbles 1.0 then, "), std::string::npos) << output.err;
  EXPECT_NE(output.err.find("adamw as by_hand then, as " + config + " now"), std::string::npos)
      << output.err;
}

TEST_F(Cli, BadTrainingInputIsRefused) {
  expect_refused("train --config debug --device cpu --vocab 100", "the tokenizer has 256 tokens");
  expect_refused("train --device cpu --model x --dim 64", "--dim");
  expect_refused("train --config debug --device cpu --init-std 0", "--init-std");

  expect_refused("train --config nothing", "nothing");
  expect_refused("train --config debug --device cpu --data " + file("missing"), "missing");
  expect_refused("train --config debug --device cpu --plan fast --steps 1",
                 "baseline, fused, flash");
  expect_refused("train --config debug --device cpu --resume", "--out");
  expect_refused("train --config debug --device cpu --validation-batches -1", "not in range");
  expect_refused("train --config debug --device cpu --dtype tf32", "tf32");
  expect_refused("generate --model " + file("missing"), "missing");
  expect_refused("compare --config debug --device cpu --plans none", "none");
  for (const char* command : {"train", "compare", "diff"})
    expect_refused(
        command + std::string(" --config debug --device cpu --batch 1048576 --seq 1048576"),
        "smaller");
}

TEST_F(Cli, ARunsFolderIsNoModel) {
  const std::string train = "train --config debug --device cpu --steps 4 --out ";
  CliOutput output = run(train + file("run") + " --report-every 1");
  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(std::ranges::count(output.out, '['), 4) << output.out;  // every report asked for
  expect_refused("generate --model " + file("run"), "run/latest");
  expect_refused("train --steps 1 --model " + file("run"), "run/latest");
  expect_refused("generate --device cpu --context 3 --model " + file("run/latest") + " longer",
                 "the prompt has 6 tokens");
  output = run("train --resume --device cpu --out " + file("run"));
  EXPECT_NE(output.out.find("nothing was left to do"), std::string::npos) << output.out;
  expect_refused(train + file("none") + " --resume", "none holds no checkpoint");
}

TEST_F(Cli, DecodersHaveTypesOfTheirOwn) {
  for (const std::string command : {"generate", "logits --tokens 1"})
    expect_refused(command + " --device cpu --dtype tf32 --model " + file("missing"),
                   "neither f32 nor bf16");
}

}  // namespace
}  // namespace cria::test
