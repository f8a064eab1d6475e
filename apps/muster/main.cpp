// The program `muster`: starts jobs, and tells what Muster sees of this machine.
#include <fmt/format.h>

#include "commands.h"

int main(int argc, char** argv) {
  using namespace muster::app;
  CLI::App app(
      "Muster trains one model with many processes.\n"
      "Start the same script on every core or host; environment variables, or `muster run`, make them one "
      "job.",
      "muster");
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("muster: {}\nTry: muster --help, or muster run --help\n", error.what());
  });
  Invocation invocation{.program = argc > 0 ? argv[0] : "muster"};
  add_run(app, invocation);
  add_agent(app, invocation);
  add_explain(app, invocation);
  add_checkpoint(app, invocation);
  add_verify(app, invocation);
  add_certs(app, invocation);
  add_data(app, invocation);
  add_ranktable(app, invocation);
  add_watching(app, invocation);
  add_kubernetes(app, invocation);
  add_information(app, invocation);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_code_usage;
  }
  return invocation.exit_code;
}
