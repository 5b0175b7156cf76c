"""Compares two contracts as they are on the wire.

    compare.py OURS REFERENCE       each an encoded FileDescriptorSet

Names, numbers and types of everything must be the same; how files are laid out and what comments say does not matter.
"""

import pathlib, sys

from google.protobuf import descriptor_pb2


def facts(path):
    """Everything a client of the contract relies on, one line each."""
    files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(path).read_bytes()).file
    field_types = descriptor_pb2.FieldDescriptorProto
    for file in files:
        if file.package != "memory.v1":
            continue
        for enum in file.enum_type:
            for value in enum.value:
                yield f"enum {enum.name}: {value.name} = {value.number}"
        for message in file.message_type:
            yield f"message {message.name}"
            for field in message.field:
                kind = field.type_name or field_types.Type.Name(field.type)
                label = "repeated" if field.label == field_types.LABEL_REPEATED else "single"
                presence = "optional" if field.proto3_optional else "plain"
                if field.HasField("oneof_index") and not field.proto3_optional:
                    presence = f"one of {message.oneof_decl[field.oneof_index].name}"
                yield f"message {message.name}: {label} {presence} {kind} {field.name} = {field.number}"
        for service in file.service:
            for method in service.method:
                sent = ("stream " if method.client_streaming else "") + method.input_type
                told = ("stream " if method.server_streaming else "") + method.output_type
                yield f"call /{file.package}.{service.name}/{method.name}: {sent} -> {told}"


def main():
    ours, reference = (set(facts(path)) for path in sys.argv[1:])
    if not reference:
        sys.exit("compare: there is nothing to compare with")
    for fact in sorted(reference - ours):
        print(f"compare: the reference has, and we do not: {fact}")
    for fact in sorted(ours - reference):
        print(f"compare: we have, and the reference does not: {fact}")
    if ours != reference:
        sys.exit(1)
    print(f"compare: {len(ours)} facts, all the same")


main()
