// muster certs new|revoke|show: certificates for trying out encrypted jobs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>

#include "commands.h"
#include "muster/launch/launch.h"

namespace muster::app {
namespace {

void print_next_steps(const launch::CertificateRequest& request) {
  const std::string folder = std::filesystem::path(request.folder).lexically_normal().string();
  const std::string at = folder.ends_with('/') ? folder : folder + "/";
  fmt::print(
      "\nNext:\n"
      "  1. Copy {0} to every host of the job, but not {0}ca.key: anyone who has it can make certificates.\n",
      at);
  if (request.nodes.empty()) {
    fmt::print(
        "  2. Start the job with them, on every host:\n"
        "       muster run -n 2 --tls-config {0}config.json \\\n"
        "         --client-password-file {0}client.password --server-password-file {0}server.password "
        "train.py\n"
        "     or set MUSTER_TLS_CONFIG, MUSTER_TLS_CLIENT_PASSWORD_FILE and "
        "MUSTER_TLS_SERVER_PASSWORD_FILE.\n",
        at);
  } else {
    fmt::print(
        "  2. Start each process with MUSTER_TLS_CONFIG, MUSTER_TLS_CLIENT_PASSWORD_FILE and\n"
        "     MUSTER_TLS_SERVER_PASSWORD_FILE naming config.json, client.password and server.password\n"
        "     of its own folder: {0} for the scheduler, {0}<MS_NODE_ID>/ for the others ({1}).\n",
        at, fmt::join(request.nodes, ", "));
  }
  fmt::print("  3. Should one get lost:  muster certs revoke {0} {0}client.p12\n", at);
}

int make(const launch::CertificateRequest& request) {
  const auto made = launch::make_certificates(request);
  if (!made) return refuse("certs new", made.error().message);
  for (const std::string& note : made->notes) fmt::print(stderr, "muster certs new: note: {}\n", note);
  fmt::print("Certificates until {} for {}\n", launch::date_text(made->end_s), fmt::join(made->names, ", "));
  print_next_steps(request);
  return 0;
}

int revoke(const launch::RevocationRequest& request) {
  const auto done = launch::revoke_certificate(request);
  if (!done) return refuse("certs revoke", done.error().message);
  fmt::print("{} ({}) {}: {}\n", done->subject, done->serial,
             done->was_revoked ? "was revoked before" : "is revoked", fmt::join(done->lists, ", "));
  fmt::print(
      "Running processes read the list again by themselves where it is replaced; copy it to every host. "
      "Connections that are open stay.\n");
  return 0;
}

int show(const std::string& path, const std::string& password_file) {
  const auto lines = launch::describe_certificates(path, password_file, std::time(nullptr));
  if (!lines) return refuse("certs show", lines.error().message);
  fmt::print("{}\n", fmt::join(*lines, "\n"));
  return 0;
}

void add_new(CLI::App& certs, Invocation& invocation) {
  auto request = std::make_shared<launch::CertificateRequest>();
  CLI::App* command = certs.add_subcommand("new", "Make an authority and what it signs, to try it out");
  command->add_option("--hosts", request->hosts, "Names and addresses of the job's hosts: a.example,10.0.0.7")
      ->type_name("HOSTS")
      ->delimiter(',')
      ->required();
  command
      ->add_option("--nodes", request->nodes,
                   "Node ids that get certificates of their own (default: one for all)")
      ->type_name("IDS")
      ->delimiter(',');
  command->add_option("--out", request->folder, "Folder to make")->type_name("FOLDER")->required();
  command->add_option("--days", request->days, "Days that the certificates are valid (default: 365)")
      ->type_name("NUMBER");
  command->callback([request, &invocation] {
    request->now_s = std::time(nullptr);
    invocation.exit_code = make(*request);
  });
}

void add_revoke(CLI::App& certs, Invocation& invocation) {
  auto request = std::make_shared<launch::RevocationRequest>();
  CLI::App* command = certs.add_subcommand("revoke", "Add a certificate to the revocation list");
  command->add_option("place", request->place, "Folder of `muster certs new`, or its crl.pem")->required();
  command->add_option("certificate", request->certificate, "A .p12 file, or PEM")->required();
  command
      ->add_option("--password-file", request->password_file,
                   "File of the .p12's password (default: the one beside it)")
      ->type_name("FILE");
  command->callback([request, &invocation] {
    request->now_s = std::time(nullptr);
    invocation.exit_code = revoke(*request);
  });
}

}  // namespace

void add_certs(CLI::App& app, Invocation& invocation) {
  CLI::App* certs = app.add_subcommand("certs", "Certificates for encrypted jobs: new, revoke, show");
  certs->require_subcommand(1);
  certs->footer(
      "\nFor trying out. If your site has a certificate authority, use its certificates: "
      "docs/guide/security.md");
  add_new(*certs, invocation);
  add_revoke(*certs, invocation);
  auto path = std::make_shared<std::string>();
  auto password_file = std::make_shared<std::string>();
  CLI::App* command =
      certs->add_subcommand("show", "Show .p12 files, certificates, revocation lists, folders");
  command->add_option("path", *path, "File or folder")->required();
  command->add_option("--password-file", *password_file, "As of revoke")->type_name("FILE");
  command->callback(
      [path, password_file, &invocation] { invocation.exit_code = show(*path, *password_file); });
}

}  // namespace muster::app
