//! Elements of a file, their attributes, and classes of PCI devices.

/// Elements with the element that they stand in, and their attributes.
pub(super) const ELEMENTS: [(&str, &str, &[&str]); 11] = [
    ("system", "", &["version", "name"]),
    (
        "cpu",
        "system",
        &[
            "host_hash",
            "numaid",
            "affinity",
            "arch",
            "vendor",
            "familyid",
            "modelid",
        ],
    ),
    (
        "pci",
        "cpu pci",
        &[
            "busid",
            "class",
            "vendor",
            "device",
            "subsystem_vendor",
            "subsystem_device",
            "link_speed",
            "link_width",
        ],
    ),
    (
        "gpu",
        "pci",
        &["dev", "sm", "rank", "gdr", "mlopart", "gcn", "arch"],
    ),
    ("nvlink", "gpu", &["target", "count", "tclass"]),
    ("xgmi", "gpu", &["target", "count", "tclass"]),
    ("c2c", "gpu", &["bw", "count"]),
    ("nic", "cpu pci", &[]),
    (
        "net",
        "nic",
        &[
            "name", "dev", "speed", "port", "latency", "guid", "maxconn", "gdr", "coll", "net",
            "gin", "rma", "rail", "plane",
        ],
    ),
    ("gin", "nic", &["name"]),
    ("pcilink", "pci", &["target"]),
];

/// Kind of a PCI device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DeviceClass {
    Gpu,
    Nic,
    NvSwitch,
    CpuBridge,
    Other,
}

impl DeviceClass {
    /// The kind by its class, as in NCCL; `0x12` are AMD's GPUs.
    pub(super) fn of(class: &str) -> Self {
        match class {
            _ if class.starts_with("0x068000") => Self::NvSwitch,
            _ if class.starts_with("0x068001") => Self::CpuBridge,
            _ if class.starts_with("0x03") || class.starts_with("0x12") => Self::Gpu,
            _ if class.starts_with("0x02") => Self::Nic,
            _ => Self::Other,
        }
    }
}
