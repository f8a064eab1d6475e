# Python and nanobind for the package in python/. The interpreter is -DPython_EXECUTABLE, else the checkout's own
# .venv, else whatever CMake finds; nanobind is the one installed for that interpreter.
# MUSTER_PYTHON: ON demands both, OFF skips the package, AUTO builds it where both are found and says so.
set(MUSTER_PYTHON_FOUND FALSE)
set(venv_python "${PROJECT_SOURCE_DIR}/.venv/bin/python")
if(NOT Python_EXECUTABLE AND EXISTS "${venv_python}")
  set(Python_EXECUTABLE "${venv_python}")
endif()
find_package(Python 3.10 COMPONENTS Interpreter Development.Module QUIET)
if(Python_FOUND)
  execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
    OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_package(nanobind 3.1 CONFIG QUIET)
endif()

if(nanobind_FOUND)
  set(MUSTER_PYTHON_FOUND TRUE)
  message(STATUS "Muster: Python package for ${Python_EXECUTABLE} (${Python_VERSION}), nanobind ${nanobind_VERSION}")
elseif(MUSTER_PYTHON STREQUAL "AUTO")
  message(STATUS "Muster: Python package not built; it needs Python's headers and nanobind 3.1 (pip install nanobind)")
else()
  message(FATAL_ERROR "MUSTER_PYTHON=${MUSTER_PYTHON} needs Python 3.10 with its headers (python3-dev) and nanobind 3.1 "
                      "(pip install nanobind==3.1.0) for '${Python_EXECUTABLE}'; -DMUSTER_PYTHON=OFF builds without")
endif()

# muster_python_package(SOURCE BUILT INSTALLED): links the .py files, py.typed, the lists of _check and what muster.torch compiles in
# SOURCE into BUILT, so that an edit needs no build, and installs them into INSTALLED below site-packages.
function(muster_python_package source built installed)
  file(GLOB_RECURSE files RELATIVE "${source}" CONFIGURE_DEPENDS "${source}/*.py" "${source}/py.typed" "${source}/_check/*.txt"
       "${source}/torch/*.h" "${source}/torch/*.cpp")
  file(GLOB_RECURSE links "${built}/*.py")
  foreach(link ${links})
    if(IS_SYMLINK "${link}" AND NOT EXISTS "${link}")
      file(REMOVE "${link}")  # its source is gone, and Python would list the module
    endif()
  endforeach()
  foreach(file ${files})
    get_filename_component(folder "${file}" DIRECTORY)
    file(MAKE_DIRECTORY "${built}/${folder}")
    file(CREATE_LINK "${source}/${file}" "${built}/${file}" SYMBOLIC)
    install(FILES "${source}/${file}" DESTINATION "${installed}/${folder}" COMPONENT python EXCLUDE_FROM_ALL)
  endforeach()
endfunction()
