//! Links the agent so that it stays in the process: HotSpot (JDK 21 and newer, jvmtiAgent.cpp, `unload_library`) unloads a library whose `Agent_OnAttach`
//! refuses, but classes and threads of the JVM may lead into ours for ever.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
