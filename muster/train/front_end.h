// Hooks of a language above: where lines are printed, and what may end a wait.
#pragma once

#include <functional>
#include <string_view>

#include "muster/base/base.h"

namespace muster::train {

// Prints one line and flushes. By default to standard output; Python prints by its own `print`, so that lines
// of both languages keep their order and redirections hold.
void print_line(std::string_view line);
void set_print_hook(std::function<void(std::string_view)> hook);

// Called between steps, between the ops of a long step, and about every 100 ms while data is waited for; an
// error ends the training. Python looks for signals here.
Result<> look_for_interruption();
void set_interruption_hook(std::function<Result<>()> hook);

}  // namespace muster::train
