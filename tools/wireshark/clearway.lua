-- Wireshark dissector for the STrack header of Clearway's captures (trace.pcapng).
--
--   tshark -X lua_script:clearway.lua -r trace.pcapng
--
-- or put the file into Wireshark's folder of personal Lua plugins (Help > About Wireshark > Folders).
-- The header is documented in crates/transport/src/wire/strack.rs and in the book, "Captures".

local PORT = 4794
local VERSION = 1
local COMMON = 20

local DATA, SACK, PROBE, ACK, NOTIFICATION, RATE_CONTROL = 1, 2, 3, 4, 5, 6
local TYPES = {
    [DATA] = "Data",
    [SACK] = "Selective acknowledgement",
    [PROBE] = "Probe",
    [ACK] = "Cumulative acknowledgement",
    [NOTIFICATION] = "Congestion notification",
    [RATE_CONTROL] = "Rate control",
}
local LENGTHS = { [DATA] = 40, [SACK] = 40, [PROBE] = 24, [ACK] = 24, [NOTIFICATION] = 20, [RATE_CONTROL] = 40 }

local strack = Proto("strack", "STrack as Clearway writes it")

local fields = {
    version = ProtoField.uint8("strack.version", "Version", base.DEC, nil, 0xf0),
    type = ProtoField.uint8("strack.type", "Type", base.DEC, TYPES, 0x0f),
    flags = ProtoField.uint8("strack.flags", "Flags", base.HEX),
    ack_request = ProtoField.bool("strack.flags.ack_request", "Acknowledgement requested", 8, nil, 0x01),
    retransmission = ProtoField.bool("strack.flags.retransmission", "Sent before", 8, nil, 0x02),
    end_of_message = ProtoField.bool("strack.flags.end_of_message", "End of message", 8, nil, 0x04),
    end_of_flow = ProtoField.bool("strack.flags.end_of_flow", "End of flow", 8, nil, 0x08),
    answers_probe = ProtoField.bool("strack.flags.probe", "Answers a probe", 8, nil, 0x01),
    nack = ProtoField.bool("strack.flags.nack", "Go back", 8, nil, 0x01),
    echo = ProtoField.bool("strack.flags.ecn", "Echo of a mark", 8, nil, 0x02),
    reflected = ProtoField.bool("strack.flags.reflected", "On its way back", 8, nil, 0x01),
    leaving = ProtoField.bool("strack.flags.leaving", "The flow leaves", 8, nil, 0x02),
    queue_pair = ProtoField.uint8("strack.qp", "Queue pair"),
    parts = ProtoField.uint8("strack.parts", "Parts of the message"),
    flow = ProtoField.uint32("strack.flow", "Flow"),
    stamp = ProtoField.uint64("strack.stamp", "Time stamp (ps)"),
    entropy = ProtoField.uint16("strack.entropy", "Entropy", base.HEX),
    size = ProtoField.uint16("strack.size", "Simulated size"),
    psn = ProtoField.uint32("strack.psn", "Packet sequence number"),
    message = ProtoField.uint32("strack.message", "Message"),
    offset = ProtoField.uint64("strack.offset", "Offset in the message"),
    payload = ProtoField.uint16("strack.payload", "Bytes of payload"),
    epsn = ProtoField.uint32("strack.epsn", "Expected packet sequence number"),
    base_offset = ProtoField.uint16("strack.base_offset", "Base offset"),
    base = ProtoField.uint32("strack.base", "Bitmap from"),
    out_of_order = ProtoField.uint16("strack.ooo", "Packets out of order"),
    bytes_received = ProtoField.uint32("strack.bytes_received", "Payload bytes received"),
    bitmap = ProtoField.uint64("strack.bitmap", "Bitmap", base.HEX),
    rate = ProtoField.uint64("strack.rate", "Allocated rate (bit/s)"),
    let_through = ProtoField.uint32("strack.let_through", "Speculative packets let through"),
    sequence = ProtoField.uint16("strack.sequence", "Control packet"),
    connections = ProtoField.uint16("strack.connections", "Open connections"),
    links = ProtoField.uint8("strack.links", "Links passed"),
}
strack.fields = fields

local unknown = ProtoExpert.new("strack.unknown", "Unknown version or type", expert.group.UNDECODED, expert.severity.WARN)
strack.experts = { unknown }

local FLAGS = {
    [DATA] = { fields.ack_request, fields.retransmission, fields.end_of_message, fields.end_of_flow },
    [SACK] = { fields.answers_probe, fields.echo },
    [ACK] = { fields.nack, fields.echo },
    [RATE_CONTROL] = { fields.reflected, fields.leaving },
}

-- What the info column says of a packet.
local function summary(kind, buffer)
    local flow = buffer(4, 4):uint()
    local text = string.format("%s flow=%u", TYPES[kind], flow)
    if kind == DATA then
        text = text .. string.format(" psn=%u offset=%s len=%u",
            buffer(20, 4):uint(), tostring(buffer(28, 8):uint64()), buffer(36, 2):uint())
        local flags = buffer(1, 1):uint()
        if flags % 4 >= 2 then text = text .. " [sent before]" end
        if flags % 8 >= 4 then text = text .. " [end of message]" end
    elseif kind == SACK then
        text = text .. string.format(" epsn=%u ooo=%u bytes=%u",
            buffer(20, 4):uint(), buffer(26, 2):uint(), buffer(28, 4):uint())
        if buffer(1, 1):uint() % 4 >= 2 then text = text .. " [marked]" end
    elseif kind == PROBE then
        text = text .. string.format(" base=%u", buffer(20, 4):uint())
    elseif kind == ACK then
        text = text .. string.format(" epsn=%u", buffer(20, 4):uint())
    elseif kind == RATE_CONTROL then
        text = text .. string.format(" rate=%s bit/s links=%u", tostring(buffer(20, 8):uint64()), buffer(36, 1):uint())
        local flags = buffer(1, 1):uint()
        if flags % 2 >= 1 then text = text .. " [back]" end
        if flags % 4 >= 2 then text = text .. " [leaving]" end
    end
    return text
end

local function add_fields(kind, buffer, tree)
    if kind == DATA then
        tree:add(fields.psn, buffer(20, 4))
        tree:add(fields.message, buffer(24, 4))
        tree:add(fields.offset, buffer(28, 8))
        tree:add(fields.payload, buffer(36, 2))
    elseif kind == SACK then
        tree:add(fields.epsn, buffer(20, 4))
        tree:add(fields.base_offset, buffer(24, 2))
        tree:add(fields.base, buffer(20, 6), (buffer(20, 4):uint() + buffer(24, 2):uint()) % 4294967296):set_generated()
        tree:add(fields.out_of_order, buffer(26, 2))
        tree:add(fields.bytes_received, buffer(28, 4))
        tree:add(fields.bitmap, buffer(32, 8))
    elseif kind == PROBE then
        tree:add(fields.base, buffer(20, 4))
    elseif kind == ACK then
        tree:add(fields.epsn, buffer(20, 4))
    elseif kind == RATE_CONTROL then
        tree:add(fields.rate, buffer(20, 8))
        tree:add(fields.let_through, buffer(28, 4))
        tree:add(fields.sequence, buffer(32, 2))
        tree:add(fields.connections, buffer(34, 2))
        tree:add(fields.links, buffer(36, 1))
    end
end

function strack.dissector(buffer, packet, root)
    if buffer:len() < COMMON then
        return 0
    end
    packet.cols.protocol = "STrack"
    local version = math.floor(buffer(0, 1):uint() / 16)
    local kind = buffer(0, 1):uint() % 16
    local length = LENGTHS[kind]
    local tree = root:add(strack, buffer(0, math.min(length or COMMON, buffer:len())))
    tree:add(fields.version, buffer(0, 1))
    tree:add(fields.type, buffer(0, 1))
    if version ~= VERSION or not length or buffer:len() < length then
        tree:add_proto_expert_info(unknown)
        return buffer:len()
    end
    local flags = tree:add(fields.flags, buffer(1, 1))
    for _, flag in ipairs(FLAGS[kind] or {}) do
        flags:add(flag, buffer(1, 1))
    end
    tree:add(fields.queue_pair, buffer(2, 1))
    if kind == DATA then
        tree:add(fields.parts, buffer(3, 1))
    end
    tree:add(fields.flow, buffer(4, 4))
    tree:add(fields.stamp, buffer(8, 8))
    tree:add(fields.entropy, buffer(16, 2))
    tree:add(fields.size, buffer(18, 2))
    add_fields(kind, buffer, tree)
    packet.cols.info = summary(kind, buffer)
    return length
end

DissectorTable.get("udp.port"):add(PORT, strack)
