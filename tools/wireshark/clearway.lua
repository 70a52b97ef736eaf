-- Wireshark dissectors for the STrack header of Clearway's captures (trace.pcapng), and for STrack over UDP between hosts.
--
--   tshark -X lua_script:clearway.lua -r trace.pcapng
--   tshark -X lua_script:clearway.lua -i eth0 -f "udp port 4794"
--
-- or put the file into Wireshark's folder of personal Lua plugins (Help > About Wireshark > Folders). Another port than 4794:
-- -d udp.port==5000,strack_udp
-- The header is documented in crates/simulator/transport/src/wire/strack.rs and in the book, "Captures"; STrack over UDP in the book,
-- "STrack over UDP". What is encrypted is not decrypted: what shows of it is who it is for and its number.

local PORT = 4794
local VERSION = 1
local COMMON = 20

local DATA, SACK, PROBE, ACK, NOTIFICATION, RATE_CONTROL, NACK = 1, 2, 3, 4, 5, 6, 7
local TYPES = {
    [DATA] = "Data",
    [SACK] = "Selective acknowledgement",
    [PROBE] = "Probe",
    [ACK] = "Cumulative acknowledgement",
    [NOTIFICATION] = "Congestion notification",
    [RATE_CONTROL] = "Rate control",
    [NACK] = "Negative acknowledgement",
}
local LENGTHS = { [DATA] = 40, [SACK] = 40, [PROBE] = 24, [ACK] = 24, [NOTIFICATION] = 20, [RATE_CONTROL] = 40, [NACK] = 24 }

local strack = Proto("strack", "STrack as Clearway writes it")

local fields = {
    version = ProtoField.uint8("strack.version", "Version", base.DEC, nil, 0xf0),
    type = ProtoField.uint8("strack.type", "Type", base.DEC, TYPES, 0x0f),
    flags = ProtoField.uint8("strack.flags", "Flags", base.HEX),
    ack_request = ProtoField.bool("strack.flags.ack_request", "Acknowledgement requested", 8, nil, 0x01),
    retransmission = ProtoField.bool("strack.flags.retransmission", "Sent before", 8, nil, 0x02),
    end_of_message = ProtoField.bool("strack.flags.end_of_message", "End of message", 8, nil, 0x04),
    end_of_flow = ProtoField.bool("strack.flags.end_of_flow", "End of flow", 8, nil, 0x08),
    trimmed = ProtoField.bool("strack.flags.trimmed", "Trimmed", 8, nil, 0x10),
    trimmed_last = ProtoField.bool("strack.flags.trimmed_last", "Trimmed at the last hop", 8, nil, 0x20),
    last_hop = ProtoField.bool("strack.flags.last_hop", "Trimmed at the last hop", 8, nil, 0x01),
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
    [DATA] = { fields.ack_request, fields.retransmission, fields.end_of_message, fields.end_of_flow,
        fields.trimmed, fields.trimmed_last },
    [SACK] = { fields.answers_probe, fields.echo },
    [ACK] = { fields.nack, fields.echo },
    [RATE_CONTROL] = { fields.reflected, fields.leaving },
    [NACK] = { fields.last_hop, fields.echo },
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
        if flags % 32 >= 16 then text = text .. " [trimmed]" end
    elseif kind == SACK then
        text = text .. string.format(" epsn=%u ooo=%u bytes=%u",
            buffer(20, 4):uint(), buffer(26, 2):uint(), buffer(28, 4):uint())
        if buffer(1, 1):uint() % 4 >= 2 then text = text .. " [marked]" end
    elseif kind == PROBE then
        text = text .. string.format(" base=%u", buffer(20, 4):uint())
    elseif kind == ACK then
        text = text .. string.format(" epsn=%u", buffer(20, 4):uint())
    elseif kind == NACK then
        text = text .. string.format(" psn=%u", buffer(20, 4):uint())
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
    elseif kind == NACK then
        tree:add(fields.psn, buffer(20, 4))
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

-- STrack over UDP.

local outer = Proto("strack_udp", "STrack over UDP")

local INIT, RETRY, REFUSAL, RESPONSE, PACKET, PACKET_ODD = 0x81, 0x82, 0x83, 0x84, 0x40, 0x41
local DATAGRAMS = {
    [INIT] = "Init",
    [RETRY] = "Retry",
    [REFUSAL] = "Refusal",
    [RESPONSE] = "Response",
    [PACKET] = "Packet, even key phase",
    [PACKET_ODD] = "Packet, odd key phase",
}
local SECURITIES = { [0] = "None", [1] = "Noise_NNpsk0_25519_AESGCM_SHA256" }
local REASONS = { [1] = "Version", [2] = "Key", [3] = "Security", [4] = "Too many connections", [5] = "Parameters" }
local TRANSPORTS = { [0] = "STrack", [1] = "Go-back-N with DCQCN" }
local TRANSPORT, TRANSPORT_REFUSED = 1, 2
local CONTENTS = {
    [TRANSPORT] = "Transport",
    [TRANSPORT_REFUSED] = "Data of a refused message",
    [3] = "Path challenge",
    [4] = "Path response",
    [5] = "Credit",
    [6] = "Blocked",
    [7] = "Message refused",
    [8] = "Keep-alive",
    [9] = "Close",
    [10] = "Close received",
}

local parts = {
    datagram = ProtoField.uint8("strack_udp.datagram", "Datagram", base.HEX, DATAGRAMS),
    connection = ProtoField.uint64("strack_udp.connection", "Connection id of the receiver", base.HEX),
    client = ProtoField.uint64("strack_udp.client", "Connection id of the client", base.HEX),
    security = ProtoField.uint8("strack_udp.security", "Security", base.DEC, SECURITIES),
    version = ProtoField.uint32("strack_udp.version", "Version"),
    cookie = ProtoField.bytes("strack_udp.cookie", "Cookie"),
    message = ProtoField.bytes("strack_udp.message", "Handshake message"),
    reason = ProtoField.uint8("strack_udp.reason", "Reason", base.DEC, REASONS),
    transport = ProtoField.uint8("strack_udp.transport", "Transport", base.DEC, TRANSPORTS),
    paths = ProtoField.uint8("strack_udp.paths", "Paths"),
    longest = ProtoField.uint16("strack_udp.datagram_length", "Longest datagram"),
    credit = ProtoField.uint64("strack_udp.credit", "Credit"),
    idle = ProtoField.uint32("strack_udp.idle", "Idle time (ms)"),
    held = ProtoField.uint32("strack_udp.socket_datagrams", "Datagrams that the sockets hold"),
    sender = ProtoField.uint64("strack_udp.sender", "Connection id of the sender", base.HEX),
    number = ProtoField.uint64("strack_udp.number", "Packet number"),
    path = ProtoField.uint8("strack_udp.path", "Path"),
    content = ProtoField.uint8("strack_udp.content", "Content", base.DEC, CONTENTS),
    encrypted = ProtoField.bytes("strack_udp.encrypted", "Encrypted"),
    length = ProtoField.uint64("strack_udp.message_length", "Length of the message"),
    tag = ProtoField.uint64("strack_udp.tag", "Tag of the message"),
    token = ProtoField.uint64("strack_udp.token", "Token", base.HEX),
    code = ProtoField.uint64("strack_udp.code", "Code of the application"),
    payload = ProtoField.bytes("strack_udp.payload", "Payload"),
}
outer.fields = parts

local malformed = ProtoExpert.new("strack_udp.malformed", "Malformed", expert.group.MALFORMED, expert.severity.WARN)
outer.experts = { malformed }

-- Connection ids of receivers whose packets are not encrypted: from handshakes in the same capture.
local plain = {}
function outer.init()
    plain = {}
end

local function id(buffer)
    return buffer:bytes():tohex()
end

local function add_parameters(buffer, tree)
    tree:add(parts.transport, buffer(0, 1))
    tree:add(parts.paths, buffer(1, 1))
    tree:add(parts.longest, buffer(2, 2))
    tree:add(parts.credit, buffer(4, 8))
    tree:add(parts.idle, buffer(12, 4))
    tree:add(parts.sender, buffer(16, 8))
    if buffer:len() >= 28 then tree:add(parts.held, buffer(24, 4)) end
end

local PARAMETERS = 24

-- A handshake message at `at`, with its length in front. Returns false if it is cut off.
local function add_message(buffer, at, is_plain, tree)
    if buffer:len() < at + 2 then return false end
    local length = buffer(at, 2):uint()
    if buffer:len() < at + 2 + length then return false end
    if length == 0 then return true end
    local item = tree:add(parts.message, buffer(at + 2, length))
    if is_plain and length >= PARAMETERS then
        add_parameters(buffer(at + 2, length), item)
    end
    return true
end

-- Versions at `at`, with their number in front. Returns where they end, or nothing.
local function add_versions(buffer, at, tree)
    if buffer:len() < at + 1 then return nil end
    local count = buffer(at, 1):uint()
    if buffer:len() < at + 1 + 4 * count then return nil end
    for index = 0, count - 1 do
        tree:add(parts.version, buffer(at + 1 + 4 * index, 4))
    end
    return at + 1 + 4 * count
end

local function add_init(buffer, tree)
    if buffer:len() < 11 then return false end
    tree:add(parts.security, buffer(9, 1))
    local is_plain = buffer(9, 1):uint() == 0
    plain[id(buffer(1, 8))] = is_plain or nil
    local at = add_versions(buffer, 10, tree)
    if not at or buffer:len() < at + 1 then return false end
    local cookie = buffer(at, 1):uint()
    if buffer:len() < at + 1 + cookie then return false end
    if cookie > 0 then
        tree:add(parts.cookie, buffer(at + 1, cookie))
    end
    return add_message(buffer, at + 1 + cookie, is_plain, tree)
end

local function add_handshake(kind, buffer, tree)
    tree:add(parts.client, buffer(1, 8))
    if kind == INIT then
        return add_init(buffer, tree)
    elseif kind == RETRY then
        if buffer:len() < 33 then return false end
        tree:add(parts.cookie, buffer(9, 24))
        return true
    elseif kind == REFUSAL then
        if buffer:len() < 11 then return false end
        tree:add(parts.reason, buffer(9, 1))
        return add_versions(buffer, 10, tree) ~= nil
    end
    if buffer:len() < 13 then return false end
    tree:add(parts.version, buffer(9, 4))
    local is_plain = plain[id(buffer(1, 8))]
    if is_plain and buffer:len() >= 15 + PARAMETERS then
        plain[id(buffer(15 + 16, 8))] = true
    end
    return add_message(buffer, 13, is_plain, tree)
end

-- The content of a packet that is not encrypted. Returns false if it is cut off.
local function add_content(buffer, packet, tree, root)
    if buffer:len() < 19 then return false end
    local kind = buffer(18, 1):uint()
    tree:add(parts.path, buffer(17, 1))
    tree:add(parts.content, buffer(18, 1))
    local at = 19
    if kind == TRANSPORT or kind == TRANSPORT_REFUSED then
        local used = strack.dissector(buffer(at):tvb(), packet, root)
        local is_data = buffer:len() > at and buffer(at, 1):uint() % 16 == DATA
        if not is_data or buffer:len() < at + used + 16 then return used > 0 end
        at = at + used
        tree:add(parts.length, buffer(at, 8))
        tree:add(parts.tag, buffer(at + 8, 8))
        if buffer:len() > at + 16 then
            tree:add(parts.payload, buffer(at + 16))
        end
        return true
    end
    packet.cols.info = string.format("%s path=%u", CONTENTS[kind] or "Unknown content", buffer(17, 1):uint())
    local numbers = { [3] = parts.token, [4] = parts.token, [5] = parts.credit, [6] = parts.credit, [9] = parts.code }
    if numbers[kind] then
        if buffer:len() < at + 8 then return false end
        tree:add(numbers[kind], buffer(at, 8))
    elseif kind == 7 then
        if buffer:len() < at + 8 then return false end
        tree:add(fields.flow, buffer(at, 4))
        tree:add(fields.message, buffer(at + 4, 4))
    end
    return CONTENTS[kind] ~= nil
end

function outer.dissector(buffer, packet, root)
    if buffer:len() < 9 then
        return 0
    end
    local kind = buffer(0, 1):uint()
    if not DATAGRAMS[kind] then
        -- A capture of a simulation has the header of STrack alone.
        return strack.dissector(buffer, packet, root)
    end
    packet.cols.protocol = "STrack/UDP"
    local tree = root:add(outer, buffer())
    tree:add(parts.datagram, buffer(0, 1))
    local whole
    if kind ~= PACKET and kind ~= PACKET_ODD then
        packet.cols.info = DATAGRAMS[kind]
        whole = add_handshake(kind, buffer, tree)
    elseif buffer:len() < 17 then
        whole = false
    else
        tree:add(parts.connection, buffer(1, 8))
        tree:add(parts.number, buffer(9, 8))
        packet.cols.info = string.format("Packet %s for %s", tostring(buffer(9, 8):uint64()), id(buffer(1, 8)))
        if plain[id(buffer(1, 8))] then
            whole = add_content(buffer, packet, tree, root)
        else
            whole = true
            if buffer:len() > 17 then
                tree:add(parts.encrypted, buffer(17))
            end
        end
    end
    if not whole then
        tree:add_proto_expert_info(malformed)
    end
    return buffer:len()
end

DissectorTable.get("udp.port"):add(PORT, outer)
