#include "muster/cluster/security_settings.h"

#include <fmt/format.h>

#include <filesystem>

#include "muster/cluster/tls_config.h"

namespace muster::cluster {
namespace {

constexpr std::string_view config_variable = "MUSTER_TLS_CONFIG";
constexpr std::string_view token_variable = "MUSTER_TOKEN_FILE";
constexpr std::string_view run_token_variable = "MUSTER_RUN_TOKEN_FILE";

// One of the two certificates, as people name what belongs to it.
struct Side {
  std::string_view password_name;  // of set_ps_context
  std::string_view variable;       // of the file that holds the password
  std::string_view certificate;    // field of the configuration
};
constexpr Side client_side{"client_password", "MUSTER_TLS_CLIENT_PASSWORD_FILE", "client_cert_path"};
constexpr Side server_side{"server_password", "MUSTER_TLS_SERVER_PASSWORD_FILE", "server_cert_path"};

std::string_view config_name(const SecuritySettings& settings) {
  return settings.is_config_of_script ? "config_file_path" : config_variable;
}

// The file of the token, and the variable that names it. The launcher's own token gives way to whatever
// the user chose.
struct TokenFile {
  std::string_view variable;
  std::string name;
};
TokenFile token_file(const SecuritySettings& settings) {
  if (settings.enable_ssl || !settings.token_file.empty()) return {token_variable, settings.token_file};
  return {run_token_variable, settings.run_token_file};
}

tl::unexpected<Error> wrong(std::string message) { return fail(Code::invalid_argument, std::move(message)); }

// What is wrong with a variable's file, or with one that a field names.
tl::unexpected<Error> wrong(std::string_view name, std::string_view value, const Error& error) {
  return fail(error.code == Code::timeout ? Code::timeout : Code::invalid_argument,
              fmt::format("{}='{}' cannot be used: {}", name, value, error.message));
}

class Reader {
 public:
  explicit Reader(bool strict) : strict_(strict) {}

  Result<> read_token(const TokenFile& file) {
    return secret(file.variable, file.name, "a token").map([this](std::string token) {
      read_.token = std::move(token);
    });
  }

  Result<> read_certificates(const SecuritySettings& settings) {
    const std::string& path = settings.config_path;
    auto file = net::read_small_file(path, tls_config_bytes_max);
    if (!file) return wrong(config_name(settings), path, file.error());
    MUSTER_TRY(const TlsConfig config, parse_tls_config(file->text, path));
    read_.warnings.insert(read_.warnings.end(), config.warnings.begin(), config.warnings.end());

    net::CertificateOptions& made = read_.certificates.emplace();
    const auto find = [&](std::string_view field, const std::string& name) {
      return find_file(path, field, name);
    };
    MUSTER_TRY(made.server_cert_path, find("server_cert_path", config.server_cert_path));
    MUSTER_TRY(made.client_cert_path, find("client_cert_path", config.client_cert_path));
    MUSTER_TRY(made.ca_cert_path, find("ca_cert_path", config.ca_cert_path));
    if (!config.crl_path.empty()) {
      MUSTER_TRY(made.crl_path, find("crl_path", config.crl_path));
    }
    made.cipher_list = config.cipher_list;
    made.expire_warning_days = config.cert_expire_warning_time_in_day;
    MUSTER_TRY_VOID(check_open(made.server_cert_path));
    MUSTER_TRY_VOID(check_open(made.client_cert_path));
    MUSTER_TRY(made.client_password,
               password(client_side, settings.client_password, settings.client_password_file));
    MUSTER_TRY(made.server_password,
               password(server_side, settings.server_password, settings.server_password_file));
    return {};
  }

  ReadSecurity take() { return std::move(read_); }

 private:
  // The text of a file that a variable names.
  Result<std::string> secret(std::string_view variable, const std::string& name, std::string_view what) {
    auto file = net::read_secret(name, what);
    if (!file) return wrong(variable, name, file.error());
    if (file->is_open_to_all) MUSTER_TRY_VOID(complain(open_text(name)));
    return std::move(file->text);
  }

  static std::string open_text(const std::string& path) {
    return fmt::format("every user of this host can read '{}', which is a secret: chmod 600 it", path);
  }

  Result<> complain(std::string message) {
    if (strict_) return wrong(std::move(message));
    read_.warnings.push_back(std::move(message));
    return {};
  }

  // As it stands in the configuration: relative to the configuration's folder, then to the working directory.
  static Result<std::string> find_file(const std::string& config_path, std::string_view field,
                                       const std::string& name) {
    const std::filesystem::path beside = std::filesystem::path(config_path).parent_path() / name;
    std::error_code error;
    if (std::filesystem::exists(beside, error)) return beside.string();
    if (std::filesystem::exists(name, error)) return name;
    if (std::filesystem::path(name).is_absolute())
      return wrong(fmt::format("{}: {}='{}' is not there", config_path, field, name));
    return wrong(fmt::format("{}: {}='{}' is neither '{}' nor in the working directory '{}'", config_path,
                             field, name, beside.string(), std::filesystem::current_path(error).string()));
  }

  Result<> check_open(const std::string& path) {
    using std::filesystem::perms;
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    const bool is_open = std::filesystem::is_regular_file(status) &&
                         (status.permissions() & perms::others_read) != perms::none;
    return is_open ? complain(open_text(path)) : Result<>{};
  }

  Result<std::string> password(const Side& side, const std::string& given, const std::string& file) {
    if (given.size() > net::secret_bytes_max)
      return wrong(fmt::format("{} has {} bytes and may have {}", side.password_name, given.size(),
                               net::secret_bytes_max));
    if (!given.empty()) return given;
    if (!file.empty()) return secret(side.variable, file, "a password");
    return wrong(
        fmt::format("there is no password for {}: give set_ps_context({}=...), or a file of it in {}. A "
                    "certificate with an empty password is not used, since every user could read its key",
                    side.certificate, side.password_name, side.variable));
  }

  const bool strict_;
  ReadSecurity read_;
};

Result<> check_choice(const SecuritySettings& settings) {
  if (settings.enable_ssl && !settings.token_file.empty())
    return wrong(fmt::format(
        "{}='{}' is set, and TLS with certificates is on ({}='{}'): a job has the one or the other",
        token_variable, settings.token_file, config_name(settings), settings.config_path));
  if (settings.enable_ssl && settings.config_path.empty())
    return wrong(fmt::format(
        "enable_ssl=True needs a configuration: set_ps_context(config_file_path=...) or {} names the file",
        config_variable));
  const auto has_no_use = [&](std::string_view name) {
    return wrong(
        fmt::format("{} is given, but TLS is off: turn it on with {} or "
                    "set_ps_context(enable_ssl=True, config_file_path=...)",
                    name, config_variable));
  };
  if (settings.enable_ssl) return {};
  if (!settings.client_password_file.empty()) return has_no_use(client_side.variable);
  if (!settings.server_password_file.empty()) return has_no_use(server_side.variable);
  return {};
}

}  // namespace

Result<ReadSecurity> read_security(const SecuritySettings& settings, bool strict) {
  MUSTER_TRY_VOID(check_choice(settings));
  Reader reader(strict);
  if (const TokenFile file = token_file(settings); !file.name.empty())
    MUSTER_TRY_VOID(reader.read_token(file));
  if (settings.enable_ssl) MUSTER_TRY_VOID(reader.read_certificates(settings));
  return reader.take();
}

Result<std::shared_ptr<const net::Security>> open_security(const SecuritySettings& settings, bool strict) {
  MUSTER_TRY(const ReadSecurity read, read_security(settings, strict));
  for (const std::string& warning : read.warnings) log::warning(warning);
  if (!read.token && !read.certificates) return nullptr;
  auto made = read.token ? net::Security::from_token(*read.token)
                         : net::Security::from_certificates(*read.certificates);
  if (const TokenFile file = token_file(settings); !made && read.token)
    return wrong(file.variable, file.name, made.error());
  if (!made) return wrong(config_name(settings), settings.config_path, made.error());
  for (const std::string& warning : (*made)->warnings()) log::warning(warning);
  return made;
}

}  // namespace muster::cluster
