// The built program shows tokens, and turns them back.
#include "cli/cli.h"

namespace cria::test {
namespace {

const std::string kFixtures = in_repository("tests/model/fixtures/").string();

TEST_F(Cli, TokenizeShowsPieces) {
  const std::string command = "tokenize --tokenizer " + kFixtures + "llama3.json ";
  const CliOutput output = run(command + "'<s>the \xff'");
  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(
      output.out.find("341 tokens; a prompt begins with 0 \"<s>\"; a text ends with 1 \"</s>\""),
      std::string::npos)
      << output.out;
  EXPECT_NE(output.out.find("\"the\""), std::string::npos) << output.out;
  EXPECT_NE(output.out.find("\"\\xff\""), std::string::npos) << output.out;
  EXPECT_NE(output.out.find("comes back byte for byte"), std::string::npos) << output.out;
}

// The same text as an argument, in a file and on standard input; and back.
TEST_F(Cli, TokenizeThereAndBack) {
  const std::string command = "tokenize --tokenizer " + kFixtures + "llama3.json ";
  const std::string text = "the cat's mat\n 12345 <s> \xe6\x97\xa5\xff";
  write_text(file("text"), text);
  const CliOutput output =
      run(command + "--ids --file " + file("text") + " --json " + file("json"));
  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(run(command + "--ids " + quoted(text)).out, output.out);
  EXPECT_EQ(run(command + "--ids < " + file("text")).out, output.out);

  write_text(file("ids"), output.out);
  EXPECT_EQ(run(command + "--decode --special --file " + file("ids")).out, text);
  std::string plain = text;
  plain.erase(plain.find("<s>"), 3);
  EXPECT_EQ(run(command + "--decode < " + file("ids")).out, plain);
  EXPECT_EQ(run(command + "--decode '[0, 1,2]' --special").out, "<s></s>!");

  const Json json = read_json(file("json"));
  EXPECT_EQ(json.at("tokens").size(), json.at("pieces").size());
  EXPECT_EQ(json.at("comes_back"), true);
  EXPECT_EQ(json.at("bos"), 0);
  EXPECT_EQ(json.at("ends"), Json::array({1}));
}

// Tokenizers that change texts are told from those that do not.
TEST_F(Cli, TokenizeSaysWhatComesBack) {
  const CliOutput output = run("tokenize --tokenizer " + kFixtures +
                               "qwen2.json 'caf\x65\xcc\x81' --json " + file("json"));
  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("comes back changed from byte 3 on: \"e\\xcc\\x81\" is \"\\xc3\\xa9\""),
            std::string::npos)
      << output.out;
  EXPECT_EQ(read_json(file("json")).at("comes_back"), false);
}

TEST_F(Cli, TokenizeRefusesWhatItCannotRead) {
  const std::string command = "tokenize --tokenizer " + kFixtures + "gpt2.json ";
  expect_refused("tokenize hello", "--tokenizer and --model");
  expect_refused(command + "--model " + kFixtures + " hello", "--tokenizer and --model");
  expect_refused("tokenize --model " + kFixtures + " hello", "no tokenizer.json");
  expect_refused(command + "--file " + file("none"), "none");
  expect_refused(command + "hello --file " + file("none"), "--file");
  expect_refused(command + "--decode '1 x'", "\"x\" is no token");
  expect_refused(command + "--decode -- -1", "\"-1\" is no token");
  expect_refused(command + "--decode 99999999999", "is no token");
  expect_refused(command + "--decode 340", "token 340 is none of the tokenizer's 340");
  expect_refused(command + "--special hello", "--decode");
  expect_refused(command + "--ids --decode 1", "one of them");
}

}  // namespace
}  // namespace cria::test
