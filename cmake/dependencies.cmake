# Third-party libraries, all from Debian 12, each found once and named here.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_path(TEMPER_MSGPACK_INCLUDE msgpack.hpp REQUIRED)
find_package(cppzmq REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost 1.74 REQUIRED)
# Not through pkg-config, whose flags define _FILE_OFFSET_BITS for all that include us.
find_library(TEMPER_HIREDIS hiredis REQUIRED)
# TLS for hiredis, whose Debian package has none.
find_package(OpenSSL 3 REQUIRED)

include(GNUInstallDirs)

# Without Boost: its headers would be most of what a codec's user compiles.
add_library(temper_msgpack INTERFACE)
target_include_directories(temper_msgpack SYSTEM INTERFACE ${TEMPER_MSGPACK_INCLUDE})
target_compile_definitions(temper_msgpack INTERFACE MSGPACK_NO_BOOST)
find_package(Eigen3 REQUIRED NO_MODULE)
