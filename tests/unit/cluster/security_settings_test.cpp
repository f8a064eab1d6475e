#include "muster/cluster/security_settings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/base/mentions.h"

namespace muster::cluster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* config_text =
    R"({"server_cert_path": "server.p12", "client_cert_path": "client.p12", "ca_cert_path": "ca.crt"})";

class SecurityOfSettings : public ::testing::Test {
 protected:
  SecurityOfSettings() {
    std::filesystem::create_directories(folder_);
    write("config.json", config_text);
    for (const char* name : {"server.p12", "client.p12", "ca.crt"}) write(name, "");
    write("client.password", "of the client\n");
    write("server.password", "of the server\n");
  }
  ~SecurityOfSettings() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = at(name);
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string at(const std::string& name) const { return folder_ / name; }
  SecuritySettings settings() const {
    return {.enable_ssl = true,
            .config_path = at("config.json"),
            .client_password_file = at("client.password"),
            .server_password_file = at("server.password")};
  }
  static std::string error_of(const SecuritySettings& settings, bool strict = false) {
    const auto read = read_security(settings, strict);
    return read ? "no error" : read.error().message;
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("security-settings-{}", ::getpid());
};

TEST_F(SecurityOfSettings, FindsFilesBesideTheConfigurationAndPasswordsInTheirFiles) {
  const auto read = read_security(settings(), false);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_TRUE(read->certificates);
  EXPECT_EQ(read->certificates->server_cert_path, at("server.p12"));
  EXPECT_EQ(read->certificates->client_cert_path, at("client.p12"));
  EXPECT_EQ(read->certificates->ca_cert_path, at("ca.crt"));
  EXPECT_EQ(read->certificates->crl_path, "");
  EXPECT_EQ(read->certificates->client_password, "of the client");
  EXPECT_EQ(read->certificates->server_password, "of the server");
  EXPECT_THAT(read->warnings, IsEmpty());
}

TEST_F(SecurityOfSettings, FindsFilesInTheWorkingDirectoryWhenTheyAreNotBesideTheConfiguration) {
  const auto before = std::filesystem::current_path();
  std::filesystem::create_directories(at("elsewhere"));
  write("elsewhere/server.p12", "");
  std::filesystem::remove(at("server.p12"));
  std::filesystem::current_path(at("elsewhere"));
  const auto read = read_security(settings(), false);
  std::filesystem::current_path(at("."));
  const std::string absent = error_of(settings());
  std::filesystem::current_path(before);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->certificates->server_cert_path, "server.p12");
  EXPECT_THAT(absent, AllOf(Mentions("config.json", "server_cert_path='server.p12'", "neither"),
                            Mentions("working", "directory")));
}

TEST_F(SecurityOfSettings, PasswordsOfTheScriptGoBeforeThoseOfFiles) {
  SecuritySettings chosen = settings();
  chosen.client_password = "other";
  EXPECT_EQ(read_security(chosen, false)->certificates->client_password, "other");
  EXPECT_EQ(read_security(chosen, false)->certificates->server_password, "of the server");
}

TEST_F(SecurityOfSettings, NeedsAPasswordForEachCertificate) {
  SecuritySettings chosen = settings();
  chosen.server_password_file.clear();
  EXPECT_THAT(error_of(chosen), AllOf(Mentions("password", "server_cert_path"),
                                      HasSubstr("set_ps_context(server_password=...)"),
                                      HasSubstr("MUSTER_TLS_SERVER_PASSWORD_FILE")));
  write("client.password", "\n");
  EXPECT_THAT(error_of(settings()),
              AllOf(HasSubstr("MUSTER_TLS_CLIENT_PASSWORD_FILE='" + at("client.password") + "'"),
                    HasSubstr("is empty")));
  std::filesystem::remove(at("client.password"));
  EXPECT_THAT(error_of(settings()), HasSubstr("No such file"));
}

TEST_F(SecurityOfSettings, ReportsSecretsThatEveryUserCanRead) {
  write("client.p12", "", 0644);
  write("server.password", "of the server", 0604);
  const auto read = read_security(settings(), false);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(read->warnings, ElementsAre(AllOf(HasSubstr("client.p12"), HasSubstr("chmod 600")),
                                          HasSubstr("server.password")));
  EXPECT_THAT(error_of(settings(), true), AllOf(HasSubstr("client.p12"), HasSubstr("chmod 600")));
}

TEST_F(SecurityOfSettings, RefusesHalfAChoice) {
  SecuritySettings both = settings();
  both.token_file = "token";
  EXPECT_THAT(error_of(both), Mentions("MUSTER_TOKEN_FILE='token'", "TLS", "certificates"));
  SecuritySettings without = settings();
  without.config_path.clear();
  EXPECT_THAT(error_of(without), Mentions("enable_ssl=True", "configuration"));
  EXPECT_THAT(error_of({.client_password_file = "file"}),
              Mentions("MUSTER_TLS_CLIENT_PASSWORD_FILE", "TLS is off"));
}

TEST_F(SecurityOfSettings, NamesWhoNamedTheConfiguration) {
  SecuritySettings chosen = settings();
  chosen.config_path = at("absent.json");
  EXPECT_THAT(error_of(chosen), HasSubstr("MUSTER_TLS_CONFIG='" + at("absent.json") + "' cannot be used"));
  chosen.is_config_of_script = true;
  EXPECT_THAT(error_of(chosen), HasSubstr("config_file_path='" + at("absent.json") + "' cannot be used"));
}

TEST_F(SecurityOfSettings, IsNoneByDefault) {
  const auto none = open_security({}, true);
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(*none, nullptr);
}

TEST_F(SecurityOfSettings, TakesATokenThatIsLongEnough) {
  const std::string token = "0123456789abcdef0123456789abcdef";
  const auto made = open_security({.token_file = write("token", token + "\n")}, true);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE((*made)->uses_certificates());
  const auto refused = open_security({.token_file = write("token", "sesame\n")}, true);
  ASSERT_FALSE(refused);
  EXPECT_THAT(
      refused.error().message,
      AllOf(HasSubstr("MUSTER_TOKEN_FILE='" + at("token") + "' cannot be used"), Not(HasSubstr("sesame"))));
  EXPECT_THAT(open_security({.token_file = write("token", token, 0604)}, true).error().message,
              Mentions("user", "read"));
}

TEST_F(SecurityOfSettings, LetsTheTokenOfTheLauncherGiveWayToWhatSomebodyChose) {
  const std::string own = write("own", "0123456789abcdef0123456789abcdef");
  const std::string chosen = write("chosen", "fedcba9876543210fedcba9876543210");
  EXPECT_EQ(read_security({.run_token_file = own}, true)->token, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(read_security({.token_file = chosen, .run_token_file = own}, true)->token,
            "fedcba9876543210fedcba9876543210");
  const auto certificates = read_security(
      {.enable_ssl = true, .config_path = "absent", .is_config_of_script = true, .run_token_file = own},
      true);
  ASSERT_FALSE(certificates);
  EXPECT_THAT(certificates.error().message, Mentions("config_file_path='absent'", "used"));
  EXPECT_THAT(open_security({.run_token_file = at("none")}, true).error().message,
              HasSubstr("MUSTER_RUN_TOKEN_FILE='" + at("none") + "' cannot be used"));
}

TEST_F(SecurityOfSettings, OpensCertificatesAndNamesTheFileThatItCannot) {
  const std::int64_t now_s = std::time(nullptr);
  const auto authority = *net::make_certificate({.common_name = "Test authority",
                                                 .is_authority = true,
                                                 .begin_s = now_s - 60,
                                                 .end_s = now_s + 10'000'000},
                                                nullptr);
  const auto package = [&](bool for_servers, const std::string& password) {
    const auto made = *net::make_certificate({.common_name = "worker",
                                              .alternative_names = {"DNS:localhost"},
                                              .for_servers = for_servers,
                                              .for_clients = !for_servers,
                                              .begin_s = now_s - 60,
                                              .end_s = now_s + 10'000'000},
                                             &authority);
    return *net::make_pkcs12({.credential = made}, password);
  };
  write("ca.crt", authority.certificate_pem);
  write("server.p12", package(true, "of the server"));
  write("client.p12", package(false, "of the client"));
  const auto made = open_security(settings(), false);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE((*made)->uses_certificates());
  write("client.p12", package(false, "another password"));
  const auto refused = open_security(settings(), false);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("MUSTER_TLS_CONFIG"), HasSubstr("client_cert_path"), HasSubstr("client.p12"),
                    HasSubstr("password"), Not(HasSubstr("of the client")), Not(HasSubstr("another"))));
}

}  // namespace
}  // namespace muster::cluster
