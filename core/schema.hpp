// A JSON schema of described structs, for programs in other languages that read and write our
// msgpack. Generated from describe().
//
// A type is written as one of
//   boolean, integer, number, text, bytes                  bytes: bin
//   int32[], float32[], uint8[]                            bin, little endian
//   id, tokens, size, flops, bandwidth, flop_rate          integers; flops and rates are doubles
//   duration, time                                         integer nanoseconds
//   NAME                                                   struct or enumeration of this schema
//   list<T>, map<K, T>, optional<T>                        optional: nil or the value
#pragma once

#include "core/json.hpp"

#include <map>
#include <typeinfo>

namespace temper {

struct FieldSchema {
  int id = 0;
  std::string name;
  std::string type;
  std::string doc;
  std::string initial;  ///< Default value as JSON; empty if there is none or the default is empty.
};
struct StructSchema {
  std::vector<FieldSchema> fields;
};

void describe(auto& v, FieldSchema& f) {
  v.field(1, "id", f.id);
  v.field(2, "name", f.name);
  v.field(3, "type", f.type);
  v.field(4, "doc", f.doc);
  v.field(5, "default", f.initial);
}
void describe(auto& v, StructSchema& s) {
  v.field(1, "fields", s.fields);
}

/// The added structs and enumerations and all that they refer to, by name.
struct Schema {
  std::map<std::string, StructSchema> structs;
  std::map<std::string, std::vector<std::string>> enumerations;  ///< Names by number, from 0.

  /// Adds T and the types of its fields. Returns the name of T in the schema.
  template <class T>
  std::string add();
};

namespace detail {

/// "Generate.Item" for "temper::actors::Generate::Item": namespaces (lower case) are dropped.
std::string schema_name(const std::type_info& type);

/// Collects the fields of one struct.
class SchemaWriter {
 public:
  SchemaWriter(Schema& schema, StructSchema& out) : schema_(schema), out_(out) {}

  template <class T>
  void field(int id,
             std::string_view name,
             T& value,
             const std::type_identity_t<FieldMeta<T>>& meta = {}) {
    out_.fields.push_back(
        {id, std::string(name), type_of<T>(), std::string(meta.doc), initial(value)});
  }

 private:
  template <class T>
  std::string type_of() {
    if constexpr (std::same_as<T, bool>)
      return "boolean";
    else if constexpr (std::same_as<T, std::string>)
      return "text";
    else if constexpr (std::is_enum_v<T> || Described<T>)
      return schema_.add<T>();
    else if constexpr (std::floating_point<T>)
      return "number";
    else if constexpr (std::integral<T>)
      return "integer";
    else if constexpr (IdLike<T>)
      return "id";
    else if constexpr (OptionalLike<T>)
      return "optional<" + type_of<typename T::value_type>() + ">";
    else if constexpr (VectorLike<T>)
      return vector_of<typename T::value_type>();
    else if constexpr (MapLike<T>)
      return map_of(type_of<typename T::key_type>(), type_of<typename T::mapped_type>());
    else
      return quantity<T>();
  }

  static std::string map_of(const std::string& key, const std::string& value) {
    return "map<" + key + ", " + value + ">";
  }

  template <class E>
  std::string vector_of() {
    if constexpr (std::same_as<E, std::int32_t>)
      return "int32[]";
    else if constexpr (std::same_as<E, float>)
      return "float32[]";
    else if constexpr (std::same_as<E, std::uint8_t>)
      return "uint8[]";
    else if constexpr (std::same_as<E, std::byte>)
      return "bytes";
    else
      return "list<" + type_of<E>() + ">";
  }

  template <class T>
  static std::string quantity() {
    if constexpr (std::same_as<T, Duration>)
      return "duration";
    else if constexpr (std::same_as<T, Time>)
      return "time";
    else if constexpr (std::same_as<T, Tokens>)
      return "tokens";
    else if constexpr (std::same_as<T, Bytes>)
      return "size";
    else if constexpr (std::same_as<T, Flops>)
      return "flops";
    else if constexpr (std::same_as<T, BytesPerSecond>)
      return "bandwidth";
    else if constexpr (std::same_as<T, FlopsPerSecond>)
      return "flop_rate";
    else
      static_assert(!std::same_as<T, T>, "no name for this type in a schema");
  }

  template <class T>
  static std::string initial(const T& value) {
    if constexpr (std::same_as<T, Duration>)
      return std::to_string(value.count());
    else if constexpr (std::same_as<T, Time>)
      return std::to_string(value.time_since_epoch().count());
    else if constexpr (Scalar<T>)
      return to_json(value);
    else if constexpr (OptionalLike<T>)
      return value ? initial(*value) : "";
    else
      return "";
  }

  Schema& schema_;
  StructSchema& out_;
};

}  // namespace detail

template <class T>
std::string Schema::add() {
  std::string name = detail::schema_name(typeid(T));
  if constexpr (std::is_enum_v<T>) {
    enumerations[name] = enum_names<T>();
  } else if (structs.try_emplace(name).second) {
    StructSchema fields;
    detail::SchemaWriter writer(*this, fields);
    T value{};
    describe(writer, value);
    structs[name] = std::move(fields);
  }
  return name;
}

}  // namespace temper
