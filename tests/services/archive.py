"""A small archive of Debian packages made on the spot, and the machine whose only archive it is. Shell text."""

from __future__ import annotations

OVERLAYS = "mount -t tmpfs none /mnt; " + "; ".join(
    f"mkdir /mnt/{name} /mnt/{name}.w; "
    f"mount -t overlay o -o lowerdir=/{name},upperdir=/mnt/{name},workdir=/mnt/{name}.w /{name}"
    for name in ("etc", "var", "usr")
)


def package(name: str, version: str, *, more: str = "") -> str:
    """Builds one package into /mnt/repo and lists it."""
    return f"""
mkdir -p /mnt/build/DEBIAN /mnt/build/usr/share/{name} /mnt/build/etc/{name}
echo "as {version} has it" > /mnt/build/etc/{name}/main.conf
echo "never changed" > "/mnt/build/etc/{name}/two words.conf"
printf '/etc/{name}/main.conf\n/etc/{name}/two words.conf\n' > /mnt/build/DEBIAN/conffiles
echo {version} > /mnt/build/usr/share/{name}/version
printf 'Package: {name}\\nVersion: {version}\\nArchitecture: all\\nMaintainer: nobody <nobody@example.org>\\n' \\
    > /mnt/build/DEBIAN/control
printf '{more}Description: a probe\\n' >> /mnt/build/DEBIAN/control
dpkg-deb --build /mnt/build /mnt/repo/{name}_{version}.deb >/dev/null
{{ cat /mnt/build/DEBIAN/control
   echo "Filename: ./{name}_{version}.deb"
   echo "Size: $(stat -c %s /mnt/repo/{name}_{version}.deb)"
   echo "SHA256: $(sha256sum /mnt/repo/{name}_{version}.deb | cut -d' ' -f1)"
   echo; }} >> /mnt/repo/Packages
rm -r /mnt/build
"""


ARCHIVE = "\n".join(
    (
        "mkdir /mnt/repo; chmod 755 /mnt",
        package("opsprobe", "1.0"),
        package("opsprobe", "2.0", more="Depends: opsprobe-lib\\n"),
        package("opsprobe-lib", "1.0"),
        package("opsextra", "1.0"),
        "rm -rf /etc/apt/sources.list.d /etc/apt/preferences.d/* /var/lib/apt/lists/*",
        "echo 'deb [trusted=yes] file:/mnt/repo ./' > /etc/apt/sources.list",
        "echo 'APT::Sandbox::User \"root\";' > /etc/apt/apt.conf.d/99probe",
        "apt-get update -qq",
        "apt-get install -y -qq opsprobe=1.0 opsextra",
        "apt-mark hold opsextra",
    )
)
