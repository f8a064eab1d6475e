function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGV}")
  endif()
endfunction()

# run_saying(WORDS STREAM): the program ends well and says the words on "output" or "errors".
function(run_saying words stream)
  execute_process(COMMAND "${WORK}/build/consumer" RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT status EQUAL 0 OR NOT "${${stream}}" MATCHES "${words}")
    message(FATAL_ERROR "exit code ${status}, and '${words}' is not in its ${stream}:\n${output}${errors}")
  endif()
endfunction()

# Not below the build: there the kernels of oneDNN would be found in the tree around the program.
execute_process(COMMAND mktemp -d OUTPUT_VARIABLE WORK OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
run(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${WORK}/prefix" --component development)
if(SANITIZE)
  set(FLAGS "${FLAGS} -fsanitize=${SANITIZE}")
endif()
run(${CMAKE_COMMAND} -G "${GENERATOR}" -S "${SOURCE}" -B "${WORK}/build" "-DCMAKE_PREFIX_PATH=${WORK}/prefix"
    "-DCMAKE_CXX_FLAGS=${FLAGS}")
run(${CMAKE_COMMAND} --build "${WORK}/build")
if(ONEDNN)
  if(SANITIZE)  # its dlopen() looks nothing up by the program's own path
    set(ENV{LD_LIBRARY_PATH} "${WORK}/prefix/lib/muster")
  endif()
  run_saying("kernels of oneDNN" output)
endif()
file(REMOVE_RECURSE "${WORK}/prefix/lib/muster")
run_saying("warning: no oneDNN: muster_onednn.so: cannot open.*LD_LIBRARY_PATH" errors)
file(REMOVE_RECURSE "${WORK}")
