#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "authority.h"
#include "muster/net/net.h"

namespace muster::net {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing_only::Authority;

class PackagesOnDisk : public ::testing::Test {
 protected:
  PackagesOnDisk() {
    write("ca.crt", authority_.pem());
    write("whole.p12", whole_);
  }
  ~PackagesOnDisk() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(folder_);
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  // What is said of a server's package with these bytes.
  std::string error_of(const std::string& bytes) {
    const auto made = Security::from_certificates({.server_cert_path = write("damaged.p12", bytes),
                                                   .client_cert_path = folder_ / "whole.p12",
                                                   .ca_cert_path = folder_ / "ca.crt",
                                                   .server_password = "secret words",
                                                   .client_password = "secret words"});
    return made ? "no error" : made.error().message;
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("package-damage-" + random_hex(16));
  const Authority authority_{"Test authority"};
  const std::string whole_ =
      make_pkcs12({.credential = authority_.issue({.common_name = "one", .alternative_names = {"DNS:a"}})},
                  "secret words")
          .value();
};

TEST_F(PackagesOnDisk, AreRefusedWhereverTheyWereCutOff) {
  ASSERT_EQ(error_of(whole_), "no error");
  for (std::size_t size = 0; size < whole_.size(); ++size) {
    const std::string error = error_of(whole_.substr(0, size));
    ASSERT_THAT(error, HasSubstr("server_cert_path")) << "cut off after " << size << " bytes";
    ASSERT_THAT(error, HasSubstr("damaged.p12"));
    ASSERT_THAT(error, Not(HasSubstr("secret")));
  }
  EXPECT_THAT(error_of(whole_ + "more"), HasSubstr("damaged.p12"));
}

}  // namespace
}  // namespace muster::net
