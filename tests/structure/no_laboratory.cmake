# cmake -DSOURCE=... -DWORK=... -P no_laboratory.cmake
# A build with -DTEMPER_LAB=OFF can be configured, and compiles no source of the laboratory.
execute_process(
  COMMAND ${CMAKE_COMMAND} -G Ninja -S "${SOURCE}" -B "${WORK}" -DTEMPER_LAB=OFF -DTEMPER_TORCH=OFF
    -DTEMPER_UNITY=OFF
  RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(failed)
  message(FATAL_ERROR "cmake -DTEMPER_LAB=OFF:\n${said}")
endif()

file(READ "${SOURCE}/tests/structure/source_tree.hpp" header)
string(REGEX MATCH "kLaboratory = {[^}]*}" list "${header}")
string(REGEX MATCHALL "\"[^\"]+\"" folders "${list}")
if(NOT folders)
  message(FATAL_ERROR "kLaboratory was not found in tests/structure/source_tree.hpp")
endif()
file(READ "${WORK}/compile_commands.json" commands)
string(FIND "${commands}" "\"file\": \"${SOURCE}/cli/main.cpp\"" at)
if(at EQUAL -1)
  message(FATAL_ERROR "${WORK}/compile_commands.json does not list cli/main.cpp")
endif()
foreach(quoted ${folders})
  string(REPLACE "\"" "" folder ${quoted})
  string(FIND "${commands}" "\"file\": \"${SOURCE}/${folder}/" at)
  if(NOT at EQUAL -1)
    string(SUBSTRING "${commands}" ${at} 200 found)
    message(SEND_ERROR "-DTEMPER_LAB=OFF compiles a source of ${folder}: ${found}")
  endif()
endforeach()
