# The library that others build on: all modules in one archive, Muster::muster, installed with its headers and a package
# file for find_package(Muster). Inside this project, targets link the modules themselves.
include(CMakePackageConfigHelpers)

add_library(muster STATIC)
foreach(module ${MUSTER_MODULES})
  target_sources(muster PRIVATE $<TARGET_OBJECTS:muster_${module}>)
endforeach()
target_include_directories(muster PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(muster PUBLIC cxx_std_20)
target_link_libraries(muster
  PUBLIC tl::expected
  PRIVATE fmt::fmt PkgConfig::xxhash OpenSSL::SSL OpenSSL::Crypto JPEG::JPEG PNG::PNG Threads::Threads)
# A program finds the kernels of oneDNN where they were installed when it was linked (muster/tensor/primitives.cpp).
target_link_options(muster INTERFACE $<INSTALL_INTERFACE:LINKER:-rpath,$<INSTALL_PREFIX>/${MUSTER_KERNEL_DIR}>)
if(OpenMP_CXX_FOUND)
  target_link_libraries(muster PRIVATE OpenMP::OpenMP_CXX)
endif()
set_target_properties(muster PROPERTIES LINKER_LANGUAGE CXX)
add_library(Muster::muster ALIAS muster)

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/Muster")
if(MUSTER_SELF_CONTAINED)
  muster_shared_library(muster)
else()
  install(TARGETS muster EXPORT MusterTargets ARCHIVE COMPONENT development)
  install(EXPORT MusterTargets NAMESPACE Muster:: DESTINATION "${package_folder}" COMPONENT development)
endif()
if(NOT SKBUILD)  # a wheel has them already
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE" "${PROJECT_SOURCE_DIR}/THIRD_PARTY_NOTICES.md"
    DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT development)
endif()

# What muster/muster.h includes, and what that includes: no header that nobody outside can need is installed.
set(headers muster/muster.h)
set(to_read ${headers})
while(to_read)
  list(POP_FRONT to_read header)
  if(NOT EXISTS "${PROJECT_SOURCE_DIR}/${header}")  # the build writes it (muster/nn); it includes graph's public header only
    continue()
  endif()
  set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${header}")
  file(STRINGS "${PROJECT_SOURCE_DIR}/${header}" includes REGEX "^#include \"muster/")
  foreach(include ${includes})
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${include}")
    if(NOT included IN_LIST headers)
      list(APPEND headers ${included})
      list(APPEND to_read ${included})
    endif()
  endforeach()
endwhile()
foreach(header ${headers})
  get_filename_component(folder "${header}" DIRECTORY)
  set(root "${PROJECT_SOURCE_DIR}")
  if(NOT EXISTS "${root}/${header}")
    set(root "${PROJECT_BINARY_DIR}/generated")
  endif()
  install(FILES "${root}/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/${folder}" COMPONENT development)
endforeach()
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/MusterConfig.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/MusterConfig.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/MusterConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/MusterConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/MusterConfigVersion.cmake"
  DESTINATION "${package_folder}" COMPONENT development)
