// A child process under test: its environment, its standard input, what it prints, how it ends. Every wait
// has a deadline; nothing outlives the test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::process_test {

using namespace std::chrono_literals;
using Variables = std::map<std::string, std::string>;

class Child {
 public:
  // Starts `program` with exactly these variables.
  Child(const std::string& program, const Variables& variables);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;

  pid_t pid() const { return pid_; }
  void tell(const std::string& line);
  void signal(int number);

  // Waits until it has printed `text` on either stream; false when it ended or the time passed before.
  bool printed(const std::string& text, std::chrono::milliseconds time = 10s);
  // The rest of the line after `text`, once that was printed.
  std::string after(const std::string& text);

  // Its exit code, or minus the number of the signal that killed it; nothing when it runs on.
  std::optional<int> ended_within(std::chrono::milliseconds time);
  // From the start of `ended_within` to the end.
  std::chrono::milliseconds time_to_end() const { return time_to_end_; }
  const std::string& output() const { return output_; }

 private:
  bool read_some(std::chrono::steady_clock::time_point deadline);

  pid_t pid_ = -1;
  int pidfd_ = -1;
  int input_ = -1;
  int output_fd_ = -1;
  std::string output_;
  std::optional<int> status_;
  std::chrono::milliseconds time_to_end_{};
};

}  // namespace muster::process_test
