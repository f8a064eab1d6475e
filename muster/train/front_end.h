// Front end: what a language above does for this process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "muster/base/base.h"

namespace muster::train {

class ForeignValue;

// Each may be empty. Set before init(), and as long as nothing is under way.
struct FrontEnd {
  // Prints one line and flushes. Python prints by its own `print`, so that lines of both languages keep their
  // order and redirections hold.
  std::function<void(std::string_view)> print = {};
  // Called between steps, between the ops of a long step, and about every 100 ms while data is waited for; an
  // error ends the training. Python looks for signals here.
  std::function<Result<>()> interruption = {};
  // Called, with a bounded wait, before the process is ended: flushes the streams of that language.
  std::function<void()> flush = {};
  // The value of a metric of that language from its JSON; null where it cannot be.
  std::function<std::shared_ptr<const ForeignValue>(const std::string& json)> read_value = {};
};
FrontEnd& front_end();

// By the front end; by default to standard output.
void print_line(std::string_view line);
// What the front end says; by default nothing ends.
Result<> look_for_interruption();
// What the front end's flush does, at once and on this thread.
void flush_front_end();

}  // namespace muster::train
