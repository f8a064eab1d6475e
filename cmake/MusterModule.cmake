# Targets of many small files compile sixteen of them as one (a unity build): headers are read and templates made once,
# which halves the processor time of a whole build. After one edit fifteen more files are compiled (12 s instead of
# 3 in launch), which ccache cannot avoid. All builds have it, so that nobody's build breaks unseen.
# Files of such a target must not use one name twice in anonymous namespaces: where the compiler says "redefinition",
# rename one, or give its file SKIP_UNITY_BUILD_INCLUSION.
set(muster_light $<$<CONFIG:Release>:-O1>)
set(muster_unity UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)

# muster_module(NAME [UNITY] [LIGHT] MODULES a b LIBS c [HEADERS d] [EXCLUDE regex]): a module as a static library
# muster_<name>, made from every .cpp in its folder (and folders below) but those whose path matches, linked to the lower
# modules that it may include. HEADERS: what most of its files include, precompiled with the public headers of MODULES.
# LIGHT: compiled with -O1, a quarter faster. For modules that decide, and leave the work to kernels, network and disk.
# A rule of the layout is kept by the linker too: what is not named in MODULES is not found.

set(MUSTER_MODULES "" CACHE INTERNAL "")

add_library(muster_options INTERFACE)
target_include_directories(muster_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
target_compile_features(muster_options INTERFACE cxx_std_20)
add_library(muster_warnings INTERFACE)
target_compile_options(muster_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual
  # In a unity build a local variable may have the name of a constant in another file of its batch.
  $<IF:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>,-Wshadow=local,-Wshadow>
  $<$<NOT:$<BOOL:${MUSTER_FUZZ}>>:-Werror>  # with clang, which warns of other things, only for fuzzing
  $<$<NOT:$<CONFIG:Debug>>:-Wno-maybe-uninitialized>)  # g++ 12 reports false ones through optional and expected
if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)  # and others about std::string where it comes out of precompiled headers
  target_compile_options(muster_warnings INTERFACE
    -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
endif()
if(MUSTER_SANITIZE)
  add_compile_options(-fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
endif()

set(muster_standard_headers <algorithm> <chrono> <functional> <map> <memory> <optional> <span> <string> <string_view>
    <tl/expected.hpp> <unordered_map> <utility> <variant> <vector>)

function(muster_module name)
  cmake_parse_arguments(ARG "UNITY;LIGHT" "EXCLUDE" "MODULES;LIBS;HEADERS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${ARG_EXCLUDE}")
  endif()
  if(NOT sources)  # a module not yet built
    add_library(muster_${name} INTERFACE)
    return()
  endif()
  add_library(muster_${name} STATIC ${sources})
  if(ARG_UNITY)
    set_target_properties(muster_${name} PROPERTIES ${muster_unity})
  endif()
  if(ARG_LIGHT)
    target_compile_options(muster_${name} PRIVATE ${muster_light})
  endif()
  list(TRANSFORM ARG_MODULES REPLACE "(.+)" "<muster/\\1/\\1.h>" OUTPUT_VARIABLE public_headers)
  list(TRANSFORM ARG_MODULES PREPEND muster_)
  target_link_libraries(muster_${name} PUBLIC muster_options tl::expected ${ARG_MODULES} PRIVATE muster_warnings ${ARG_LIBS})
  list(LENGTH sources files)
  if(files GREATER 1)
    list(TRANSFORM ARG_HEADERS REPLACE "(.+)" "<\\1>")
    target_precompile_headers(muster_${name} PRIVATE ${muster_standard_headers} <fmt/format.h> ${public_headers} ${ARG_HEADERS})
  endif()
  set(MUSTER_MODULES ${MUSTER_MODULES} ${name} CACHE INTERNAL "")
endfunction()

# muster_file_options(FILES a.cpp b.cpp OPTIONS -fx -fy): compiles single files of a module with options of their own, and so
# without its precompiled header, which g++ refuses there. (A build with ccache has none, and would not show it.)
function(muster_file_options)
  cmake_parse_arguments(ARG "" "" "FILES;OPTIONS" ${ARGN})
  set_source_files_properties(${ARG_FILES} PROPERTIES
    COMPILE_OPTIONS "${ARG_OPTIONS}" SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# muster_tests(NAME MODULES a b [LIBS c]): one GoogleTest program from every .cpp in the current folder.
function(muster_tests name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "MODULES;LIBS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  add_executable(${name} ${sources})
  set_target_properties(${name} PROPERTIES ${muster_unity})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")  # what tests share
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  list(TRANSFORM ARG_MODULES PREPEND muster_)
  target_link_libraries(${name} PRIVATE ${ARG_MODULES} ${ARG_LIBS} muster_warnings fmt::fmt GTest::gmock_main)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Og>)  # a quarter less to compile; they run for milliseconds
  target_precompile_headers(${name} REUSE_FROM muster_test_headers)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()
