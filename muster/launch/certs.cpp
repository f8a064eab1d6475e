#include "muster/launch/certs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "muster/cluster/cluster.h"
#include "muster/launch/settings/wrong.h"
#include "muster/net/net.h"

namespace muster::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t file_bytes_max = std::size_t{1} << 20;
constexpr std::int64_t seconds_per_day = 24 * 60 * 60;
constexpr std::int64_t clock_tolerance_s = 60 * 60;  // hosts whose clocks are behind
constexpr std::int64_t days_max = 36'500;
constexpr std::size_t password_digits = 32;
constexpr std::size_t names_max = 1024;

constexpr const char* config_text = R"({
  "server_cert_path": "server.p12",
  "client_cert_path": "client.p12",
  "ca_cert_path": "ca.crt",
  "crl_path": "crl.pem",
  "cipher_list": "",
  "cert_expire_warning_time_in_day": 90
}
)";

bool has_only(std::string_view text, std::string_view extra) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           extra.find(c) != std::string_view::npos;
  });
}

Result<> check(const CertificateRequest& request) {
  if (request.hosts.empty()) return wrong("name the hosts of the job: --hosts a.example,b.example");
  if (request.days < 1 || request.days > days_max)
    return wrong(fmt::format("--days {}: a whole number from 1 to {}", request.days, days_max));
  for (const std::string& host : request.hosts)
    if (!net::parse_ip(host) && !has_only(host, ".-_"))
      return wrong(fmt::format("--hosts: '{}' is neither a host name nor an IP address", host));
  for (const std::string& node : request.nodes)
    if (!has_only(node, ".-_") || node.starts_with('.'))
      return wrong(
          fmt::format("--nodes: '{}' cannot be a folder's name: use letters, digits, '-', '_', '.'", node));
  std::error_code error;
  if (fs::exists(request.folder, error) && !fs::is_empty(request.folder, error))
    return wrong(
        fmt::format("--out {}: there is something in it already; choose another folder", request.folder));
  return {};
}

void add(std::vector<std::string>& names, std::string name) {
  if (std::find(names.begin(), names.end(), name) == names.end() && names.size() < names_max)
    names.push_back(std::move(name));
}

// Names and addresses: who connects may have been told either.
void add_host(MadeCertificates& made, const std::string& host) {
  if (const auto ip = net::parse_ip(host)) return add(made.names, "IP:" + *ip);
  add(made.names, "DNS:" + host);
  const auto ips = net::resolve(host);
  if (!ips) {
    made.notes.push_back(
        fmt::format("'{}' is not known here ({}): its addresses are not in the certificates, so others must "
                    "know it by that name",
                    host, ips.error().message));
    return;
  }
  for (const std::string& ip : *ips)
    if (ip.find('%') == std::string::npos) add(made.names, "IP:" + ip);
}

Result<> write(const fs::path& path, std::string_view text) {
  return real_files().write(path.string(), std::as_bytes(std::span(text)));
}

class Maker {
 public:
  Maker(const CertificateRequest& request, MadeCertificates& made) : request_(request), made_(made) {}

  Result<> make() {
    MUSTER_TRY(authority_, net::make_certificate({.common_name = "Muster trial authority",
                                                  .is_authority = true,
                                                  .begin_s = begin_s(),
                                                  .end_s = made_.end_s},
                                                 nullptr));
    MUSTER_TRY(crl_, net::make_crl({.begin_s = begin_s(), .end_s = made_.end_s}, authority_));
    MUSTER_TRY_VOID(make_folder(request_.folder));
    MUSTER_TRY_VOID(write(fs::path(request_.folder) / "ca.key", authority_.key_pem));
    MUSTER_TRY_VOID(fill(request_.folder, request_.nodes.empty() ? "" : std::string(net::scheduler_node_id)));
    for (const std::string& node : request_.nodes) {
      const fs::path folder = fs::path(request_.folder) / node;
      MUSTER_TRY_VOID(make_folder(folder));
      MUSTER_TRY_VOID(fill(folder, node));
    }
    return {};
  }

 private:
  std::int64_t begin_s() const { return request_.now_s - clock_tolerance_s; }

  static Result<> make_folder(const fs::path& path) {
    std::error_code error;
    fs::create_directories(path, error);
    if (!error) fs::permissions(path, fs::perms::owner_all, error);
    if (error) return fail(Code::io, fmt::format("cannot make '{}': {}", path.string(), error.message()));
    return {};
  }

  // Everything that a process needs, but for the authority's key.
  Result<> fill(const fs::path& folder, const std::string& node) {
    MUSTER_TRY_VOID(write(folder / "ca.crt", authority_.certificate_pem));
    MUSTER_TRY_VOID(write(folder / "crl.pem", crl_));
    MUSTER_TRY_VOID(write(folder / "config.json", config_text));
    MUSTER_TRY_VOID(make_package(folder, "server", node));
    return make_package(folder, "client", node);
  }

  Result<> make_package(const fs::path& folder, const std::string& purpose, const std::string& node) {
    net::CertificateSpec spec{
        .common_name = node.empty() ? "Muster " + purpose : fmt::format("Muster {} of {}", purpose, node),
        .alternative_names = made_.names,
        .for_servers = purpose == "server",
        .for_clients = purpose == "client",
        .begin_s = begin_s(),
        .end_s = made_.end_s};
    if (!node.empty()) spec.alternative_names.push_back(fmt::format("URI:{}{}", net::node_uri_prefix, node));
    const std::string password = net::random_hex(password_digits);
    MUSTER_TRY(net::Credential credential, net::make_certificate(spec, &authority_));
    MUSTER_TRY(const std::string package, net::make_pkcs12({.credential = std::move(credential)}, password));
    MUSTER_TRY_VOID(write(folder / (purpose + ".p12"), package));
    return write(folder / (purpose + ".password"), password + "\n");
  }

  const CertificateRequest& request_;
  MadeCertificates& made_;
  net::Credential authority_;
  std::string crl_;
};

Result<std::string> read(const fs::path& path) {
  return net::read_small_file(path.string(), file_bytes_max).map([](net::SmallFile file) {
    return std::move(file.text);
  });
}

// PEM of a certificate from a .p12 file or a PEM file.
Result<std::string> read_certificate_pem(const fs::path& path, const std::string& password_file) {
  MUSTER_TRY(std::string text, read(path));
  if (text.find("-----BEGIN") != std::string::npos) return text;
  const fs::path password_path =
      password_file.empty() ? fs::path(path).replace_extension(".password") : fs::path(password_file);
  const auto password = net::read_secret(password_path.string(), "a password");
  if (!password)
    return fail(password.error().code, fmt::format("{}: its password is not there ({}); name its file with "
                                                   "--password-file",
                                                   path.string(), password.error().message));
  const auto content = net::read_pkcs12(text, password->text);
  if (!content)
    return fail(content.error().code, fmt::format("{}: {}", path.string(), content.error().message));
  return content->credential.certificate_pem;
}

Result<net::CertificateFacts> read_facts(const fs::path& path, const std::string& password_file) {
  MUSTER_TRY(const std::string pem, read_certificate_pem(path, password_file));
  MUSTER_TRY(const auto facts, net::read_certificates(pem));
  return facts.front();
}

// The list in the folder, and the copies that its nodes have.
std::vector<std::string> lists_in(const fs::path& folder) {
  std::vector<std::string> lists = {(folder / "crl.pem").string()};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (fs::exists(entry.path() / "crl.pem", error)) lists.push_back((entry.path() / "crl.pem").string());
  std::sort(lists.begin() + 1, lists.end());
  return lists;
}

std::string state_text(std::int64_t begin_s, std::int64_t end_s, std::int64_t now_s) {
  if (now_s < begin_s) return fmt::format("NOT YET VALID: from {}", date_text(begin_s));
  if (now_s > end_s) return fmt::format("EXPIRED on {}", date_text(end_s));
  return fmt::format("until {}", date_text(end_s));
}

Result<std::vector<std::string>> describe_file(const fs::path& path, const std::string& password_file,
                                               std::int64_t now_s) {
  MUSTER_TRY(const std::string text, read(path));
  std::vector<std::string> lines;
  if (text.find("BEGIN X509 CRL") != std::string::npos) {
    MUSTER_TRY(const net::RevocationList list, net::read_crl(text));
    lines.push_back(fmt::format("{}: revocation list of {}, {}, {} revoked", path.string(), list.issuer,
                                state_text(list.begin_s, list.end_s, now_s), list.revoked.size()));
    for (const auto& entry : list.revoked)
      lines.push_back(fmt::format("  {} revoked on {}", entry.serial, date_text(entry.time_s)));
    return lines;
  }
  MUSTER_TRY(const std::string pem, read_certificate_pem(path, password_file));
  MUSTER_TRY(const auto facts, net::read_certificates(pem));
  for (const net::CertificateFacts& one : facts) {
    lines.push_back(fmt::format("{}: {} ({}), {}", path.string(), one.subject,
                                one.is_authority ? "an authority" : "signed by " + one.issuer,
                                state_text(one.begin_s, one.end_s, now_s)));
    lines.push_back(fmt::format("  serial {}", one.serial));
    if (!one.alternative_names.empty())
      lines.push_back(fmt::format("  for {}", fmt::join(one.alternative_names, ", ")));
  }
  return lines;
}

bool is_described(const fs::path& path) {
  const auto extension = path.extension();
  return extension == ".p12" || extension == ".crt" || extension == ".pem";
}

}  // namespace

std::string date_text(std::int64_t time_s) {
  const auto time = static_cast<std::time_t>(time_s);
  std::tm parts{};
  if (::gmtime_r(&time, &parts) == nullptr) return "?";
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

Result<MadeCertificates> make_certificates(const CertificateRequest& request) {
  MUSTER_TRY_VOID(check(request));
  MadeCertificates made{.end_s = request.now_s + request.days * seconds_per_day};
  for (const std::string& host : request.hosts) add_host(made, host);
  for (const char* own : {"DNS:localhost", "IP:127.0.0.1", "IP:::1"}) add(made.names, own);
  MUSTER_TRY_VOID(Maker(request, made).make());
  return made;
}

Result<Revocation> revoke_certificate(const RevocationRequest& request) {
  std::error_code error;
  const fs::path place = request.place;
  const fs::path folder = fs::is_directory(place, error) ? place : place.parent_path();
  const fs::path list_path = fs::is_directory(place, error) ? place / "crl.pem" : place;
  net::Credential authority;
  MUSTER_TRY(authority.certificate_pem, read(folder / "ca.crt"));
  MUSTER_TRY(authority.key_pem, read(folder / "ca.key"));
  MUSTER_TRY(const std::string list_text, read(list_path));
  MUSTER_TRY(net::RevocationList list, net::read_crl(list_text));
  MUSTER_TRY(const net::CertificateFacts facts, read_facts(request.certificate, request.password_file));
  if (facts.issuer != list.issuer)
    return wrong(fmt::format("'{}' was signed by {}, and the list in '{}' is of {}", request.certificate,
                             facts.issuer, list_path.string(), list.issuer));
  Revocation done{.subject = facts.subject, .serial = facts.serial};
  done.was_revoked = std::any_of(list.revoked.begin(), list.revoked.end(),
                                 [&](const auto& entry) { return entry.serial == facts.serial; });
  if (!done.was_revoked) list.revoked.push_back({.serial = facts.serial, .time_s = request.now_s});
  list.begin_s = request.now_s - clock_tolerance_s;
  MUSTER_TRY(const std::string crl, net::make_crl(list, authority));
  done.lists = lists_in(folder);
  done.lists.front() = list_path.string();
  for (const std::string& path : done.lists) MUSTER_TRY_VOID(write(path, crl));
  return done;
}

Result<std::vector<std::string>> describe_certificates(const std::string& path,
                                                       const std::string& password_file, std::int64_t now_s) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return describe_file(path, password_file, now_s);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.is_regular_file(error) && is_described(entry.path())) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> lines;
  for (const fs::path& file : files) {
    const auto described = describe_file(file, password_file, now_s);
    if (described)
      lines.insert(lines.end(), described->begin(), described->end());
    else
      lines.push_back(fmt::format("{}: {}", file.string(), described.error().message));
  }
  if (lines.empty()) return fail(Code::not_found, fmt::format("there is no certificate in '{}'", path));
  return lines;
}

}  // namespace muster::launch
