# A Java virtual machine twice: it makes a key, writes it down, and reads it again.
keytool -genkeypair -alias dilaton -keyalg EC -dname CN=node -keystore /tmp/keys -storepass secret 2>/tmp/errors ||
    cat /tmp/errors
keytool -list -keystore /tmp/keys -storepass secret | grep -o 'dilaton,.*PrivateKeyEntry' | cut -d, -f1,4
