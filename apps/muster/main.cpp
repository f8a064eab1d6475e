// The program `muster`: starts jobs, and tells what Muster sees of this machine.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "commands.h"
#include "suggestions.h"

namespace muster::app {
namespace {

// Subcommands that hand the words behind their options on show that in their usage.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (!app->get_prefix_command()) return Formatter::make_usage(app, std::move(name));
    return fmt::format("Usage: {} [options] script.py [args]\n", name);
  }
};

void add_all(CLI::App& app, Invocation& invocation) {
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  add_run(app, invocation);
  add_agent(app, invocation);
  add_explain(app, invocation);
  add_plan(app, invocation);
  add_profile(app, invocation);
  add_checkpoint(app, invocation);
  add_verify(app, invocation);
  add_certs(app, invocation);
  add_compat(app, invocation);
  add_data(app, invocation);
  add_ranktable(app, invocation);
  add_watching(app, invocation);
  add_dashboard(app, invocation);
  add_runs(app, invocation);
  add_kubernetes(app, invocation);
  add_information(app, invocation);
}

// The number of a standard stream that is closed (`2>&-`, some daemons) would be that of the next file or
// socket here, and writing to a closed one throws.
void open_standard_streams() {
  for (int stream = 0; stream <= 2; ++stream)
    if (::fcntl(stream, F_GETFD) < 0) (void)::open("/dev/null", O_RDWR);  // the lowest free number: this one
}

// The words behind `muster`. A "--" between the options and the script is left out: it is no word of the
// script's, and the parser would end the subcommand there.
std::vector<std::string> words_of(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const auto named = app.get_subcommands([&](const CLI::App* command) {
    return !words.empty() && command->get_name() == words.front() && command->get_prefix_command();
  });
  if (named.empty()) return words;
  for (auto word = words.begin() + 1; word != words.end() && word->starts_with('-'); ++word) {
    if (*word == "--") {
      words.erase(word);
      break;
    }
    const CLI::Option* const option = named.front()->get_option_no_throw(*word);
    const bool has_value = option != nullptr && option->get_items_expected_min() > 0;
    if (has_value && word + 1 != words.end()) ++word;
  }
  return words;
}

// A script that has lost its subcommand must not go on: as an error, as argparse, clap and click have it.
int exit_after(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  const Parsed parsed = last_parsed(app);
  auto unknown = parsed.command->remaining();
  if (parsed.command->get_prefix_command() && !unknown.empty() && !unknown.front().starts_with('-'))
    unknown.clear();  // a script: what is wrong is an option's value
  const bool is_bare = unknown.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
                       !parsed.command->get_subcommands([](const CLI::App*) { return true; }).empty();
  if (is_bare)
    fmt::print(stderr, "{}", app.help());
  else
    fmt::print(stderr, "{}: {}\nTry: {} --help\n", parsed.words,
               unknown.empty() ? error.what() : unknown_word(*parsed.command, unknown.front()), parsed.words);
  return exit_code_usage;
}

}  // namespace
}  // namespace muster::app

int main(int argc, char** argv) {
  using namespace muster::app;
  open_standard_streams();
  CLI::App app(
      "Muster trains one model with many processes.\n"
      "Start the same script on every core or host; environment variables, or `muster run`, make them one "
      "job.",
      "muster");
  Invocation invocation{.program = argc > 0 ? argv[0] : "muster"};
  add_all(app, invocation);
  try {
    std::vector<std::string> words = words_of(app, argc, argv);
    std::reverse(words.begin(), words.end());  // as the parser takes them
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return exit_after(app, error);
  }
  return invocation.exit_code;
}
