import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Verifies one notification. WEBHOOK_SECRET is the secret. The arguments are webhook-id, webhook-timestamp and
 * webhook-signature, the standard input is the raw body. Copy the method verify into your server; it needs Java 11.
 */
public final class Verify {
  private Verify() {}

  /**
   * Throws if a notification is not authentic. body is the raw body, byte for byte. signatures is the whole header
   * webhook-signature, which contains two signatures during a rotation. An absent header is null or "".
   */
  static void verify(String secret, String id, String timestamp, String signatures, byte[] body, Instant now)
      throws GeneralSecurityException {
    byte[] key = {};
    try {
      key = Base64.getDecoder().decode(secret.startsWith("whsec_") ? secret.substring(6) : secret);
    } catch (IllegalArgumentException fault) {
      // The key stays empty.
    }
    if (key.length == 0) {
      throw new GeneralSecurityException("the secret is not whsec_ and base64");
    }
    if (id == null || !id.matches("[!-~]{1,256}") || timestamp == null || !timestamp.matches("[0-9]{1,15}")
        || signatures == null || signatures.isEmpty()) {
      throw new GeneralSecurityException("a header is missing or malformed");
    }
    if (Duration.between(Instant.ofEpochSecond(Long.parseLong(timestamp)), now).abs()
        .compareTo(Duration.ofMinutes(5)) > 0) {
      throw new GeneralSecurityException("the timestamp is not within 5 minutes");
    }
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(key, "HmacSHA256"));
    mac.update((id + "." + timestamp + ".").getBytes(StandardCharsets.UTF_8));
    byte[] want = ("v1," + Base64.getEncoder().encodeToString(mac.doFinal(body))).getBytes(StandardCharsets.UTF_8);
    for (String signature : signatures.split(" ")) {
      if (MessageDigest.isEqual(signature.getBytes(StandardCharsets.UTF_8), want)) {
        return;
      }
    }
    throw new GeneralSecurityException("no signature matches");
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 3 || System.getenv("WEBHOOK_SECRET") == null) {
      System.err.println("WEBHOOK_SECRET=whsec_... Verify ID TIMESTAMP SIGNATURE < BODY");
      System.exit(1);
    }
    try {
      byte[] body = System.in.readAllBytes();
      verify(System.getenv("WEBHOOK_SECRET"), arguments[0], arguments[1], arguments[2], body, Instant.now());
    } catch (GeneralSecurityException fault) {
      System.err.println(fault.getMessage());
      System.exit(1);
    }
    System.out.println("verified");
  }
}
