# What the compiler and the linker add against bytes of strangers, in optimized builds (without
# optimization _FORTIFY_SOURCE does nothing, and the sanitizers find more): guards in stack frames,
# checked calls of the C library, a table of functions that is read-only once the program has begun.
# tests/structure/hardening_test.cpp reads it back from the programs.
option(TEMPER_HARDENING "Harden the programs" ON)
add_library(temper_hardening INTERFACE)
set(TEMPER_HARDENED OFF)
if(TEMPER_HARDENING AND NOT TEMPER_SANITIZE AND CMAKE_BUILD_TYPE MATCHES "Rel")
  set(TEMPER_HARDENED ON)
  target_compile_options(temper_hardening INTERFACE
    -fPIE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  target_link_options(temper_hardening INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()

# Folders that read what others send or leave behind, and are compiled with -O2: an index of the
# standard library that is out of range ends the program. Those with RUNS_ONCE have it too. Not
# where a simulation or a network spends its time.
set(TEMPER_READ_FOREIGN_BYTES
  actors/byte_pair actors/model_folder actors/protocol actors/relay actors/roles actors/runtime
  actors/server actors/shared_memory actors/task actors/transport core core/text orchestrator/fsck
  orchestrator/record rollout/server)

# temper_harden_program(<target>): what only a program can have.
function(temper_harden_program target)
  temper_check_indexes(${target})
  target_link_libraries(${target} PRIVATE temper_hardening)
  if(TEMPER_HARDENED)
    target_link_options(${target} PRIVATE -pie)
  endif()
endfunction()

# temper_check_indexes(<target>)
function(temper_check_indexes target)
  if(TEMPER_HARDENED)
    target_compile_options(${target} PRIVATE -D_GLIBCXX_ASSERTIONS)
  endif()
endfunction()
