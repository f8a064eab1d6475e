// Small files that settings name: passwords, tokens, configurations. What is read has a limit, and so has the
// wait for the writer of a pipe.
#pragma once

#include <string>
#include <string_view>

#include "muster/base/base.h"

namespace muster::net {

struct SmallFile {
  std::string text = {};
  bool is_open_to_all = false;  // a file that every user of this host may read
};

// `name` is a path, or "fd:N": a descriptor that this process was started with, which its own children do not
// inherit any more. A regular file is read from its beginning, and may be read again. Errors name it; a file
// that is larger than `size_bytes_max` is one.
Result<SmallFile> read_small_file(const std::string& name, std::size_t size_bytes_max);

// The text of a file of one line, without the line's end. `what` it is ("a password") stands in errors, which
// never show the text. An empty line is an error.
Result<SmallFile> read_secret(const std::string& name, std::string_view what);

inline constexpr std::size_t secret_bytes_max = 1024;

}  // namespace muster::net
