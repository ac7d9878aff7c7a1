// A file of JSON that grows line by line while work goes on.
#pragma once

#include <string>

#include "base/json_fwd.h"

namespace cria {

class JsonLines {
 public:
  // Without a name nothing is written.
  explicit JsonLines(std::string path) : path_(std::move(path)) {}
  ~JsonLines();
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;

  // After what the file has, or anew.
  void open(bool append);

  // All of the line or nothing. A number that is none and half a character, at which a sample may end, are no
  // failure. Nothing is written any more after one.
  void write(const Json& line);

  // What has failed: "cannot write FILE: ..."; empty if nothing has.
  const std::string& lost() const { return lost_; }

 private:
  const std::string path_;
  std::string lost_;
  int file_ = -1;
};

}  // namespace cria
