// The command that starts an agent on another host, and what went wrong when that did not work. Values only.
#pragma once

#include <string>
#include <vector>

#include "muster/base/base.h"

namespace muster::launch {

struct SshOptions {
  std::vector<std::string> words = {"ssh"};  // the ssh command and options of the user's own
  std::string agent = {};                    // the program `muster` there, where it was named
  std::string own_program = {};              // this program's file, which may lie at the same place there
};

// "ssh -p 2222" in its words; quotes and backslashes as a shell takes them.
Result<std::vector<std::string>> split_words(std::string_view text);

// One word for any POSIX shell.
std::string shell_word(std::string_view word);

// The user's options come first: ssh takes the first value that it is given of an option.
std::vector<std::string> ssh_arguments(const std::string& host, const SshOptions& options);

// Why there is no agent on the host, in one line with what to do about it. `said` is what ssh and the shell
// there wrote.
std::string describe_ssh_failure(const std::string& host, int wait_status,
                                 const std::vector<std::string>& said, const SshOptions& options);

}  // namespace muster::launch
